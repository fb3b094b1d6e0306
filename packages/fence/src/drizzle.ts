import { InvalidError } from '@leasehold/core'
import { type MapperGuard, type MapperGuardOptions, mapperGuard } from './sql/mapper-guard.js'

export type { Fenced, Guard, OpenOptions } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { MapperGuard, MapperGuardOptions } from './sql/mapper-guard.js'

/** What a guard uses of a transaction of Drizzle. */
export interface DrizzleTransaction {
  // oxlint-disable-next-line typescript/no-explicit-any -- each driver of Drizzle has its own types of statements and results
  execute(query: any): PromiseLike<any>
  rollback(): never
}

/** What a guard uses of a database of Drizzle, over an asynchronous driver. */
export interface DrizzleDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the type of the transaction is taken from here
  transaction(body: (tx: any) => Promise<any>, config?: any): Promise<any>
}

export type DrizzleTransactionOf<Db extends DrizzleDatabase> = Parameters<Parameters<Db['transaction']>[0]>[0]

export interface DrizzleGuardOptions extends MapperGuardOptions {
  /** Drizzle's own settings for the transactions of `with`, such as `{ isolationLevel: 'serializable' }`. */
  readonly transaction?: object
}

/**
 * A guard in the transactions of Drizzle: PostgreSQL (`node-postgres`, `postgres-js`) or MySQL (`mysql2`).
 * @example
 * const guard = fence(db)
 * await db.transaction(async (tx) => {
 *   await guard.enter(tx, hold)
 *   await tx.update(invoice).set({ total: sql`${invoice.total} + 7` }).where(eq(invoice.id, 42))
 * })
 */
export function fence<Db extends DrizzleDatabase>(
  db: Db,
  options: DrizzleGuardOptions = {},
): MapperGuard<DrizzleTransactionOf<Db>, DrizzleTransaction> {
  if (typeof db?.transaction !== 'function') throw new InvalidError('a guard for Drizzle takes its database')
  return mapperGuard<DrizzleTransaction, DrizzleTransaction>(
    {
      run: async (tx, text) => (await tx.execute(text)) as unknown,
      isTransaction: (tx) => typeof tx?.rollback === 'function',
      begin: <T>(body: (tx: DrizzleTransaction) => Promise<T>) =>
        db.transaction((tx: DrizzleTransaction) => body(tx), options.transaction) as Promise<T>,
    },
    options,
  ) as never
}
