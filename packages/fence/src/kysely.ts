import { InvalidError } from '@leasehold/core'
import { type MapperGuard, type MapperGuardOptions, mapperGuard } from './sql/mapper-guard.js'

export type { Fenced, Guard, OpenOptions } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { MapperGuard, MapperGuardOptions } from './sql/mapper-guard.js'

/** What a guard uses of a transaction of Kysely. */
export interface KyselyTransaction {
  // oxlint-disable-next-line typescript/no-explicit-any -- a compiled query, whose nodes are Kysely's own
  executeQuery(query: any): Promise<{ rows: any[] }>
  readonly isTransaction: boolean
}

interface TransactionBuilder {
  // oxlint-disable-next-line typescript/no-explicit-any -- the type of the transaction is taken from here
  execute(body: (tx: any) => Promise<any>): Promise<any>
}

/** What a guard uses of Kysely. */
export interface KyselyDatabase {
  transaction(): TransactionBuilder
}

export type KyselyTransactionOf<Db extends KyselyDatabase> = Parameters<
  Parameters<ReturnType<Db['transaction']>['execute']>[0]
>[0]

/**
 * A guard in the transactions of Kysely: PostgreSQL or MySQL.
 * @example
 * const guard = fence(db)
 * await db.transaction().execute(async (tx) => {
 *   await guard.enter(tx, hold)
 *   await tx.updateTable('invoice').set({ total: 7 }).where('id', '=', 42).execute()
 * })
 */
export function fence<Db extends KyselyDatabase>(
  db: Db,
  options: MapperGuardOptions = {},
): MapperGuard<KyselyTransactionOf<Db>, KyselyTransaction> {
  if (typeof db?.transaction !== 'function') throw new InvalidError('a guard for Kysely takes its database')
  return mapperGuard<KyselyTransaction, KyselyTransaction>(
    {
      run: (tx, text) => tx.executeQuery(compiled(text)),
      isTransaction: (tx) => tx?.isTransaction === true,
      begin: <T>(body: (tx: KyselyTransaction) => Promise<T>) =>
        db.transaction().execute((tx: KyselyTransaction) => body(tx)) as Promise<T>,
    },
    options,
  ) as never
}

/** Compiles a statement like Kysely's `sql.raw`. */
function compiled(text: string): object {
  const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] }
  return { sql: text, parameters: [], query, queryId: { queryId: 'leasehold' } }
}
