import { InvalidError } from '@leasehold/core'
import { type MapperGuard, type MapperGuardOptions, mapperGuard } from './sql/mapper-guard.js'

export type { Fenced, Guard, OpenOptions } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { MapperGuard, MapperGuardOptions } from './sql/mapper-guard.js'

/** What a guard uses of a transaction of Knex. */
export interface KnexTransaction {
  raw(text: string): PromiseLike<unknown>
  readonly isTransaction?: boolean
}

/** What a guard uses of Knex. */
export interface KnexDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the type of the transaction is taken from here
  transaction(body: (trx: any) => Promise<any>, config?: any): Promise<any>
}

export interface KnexGuardOptions extends MapperGuardOptions {
  /** Knex's own settings for the transactions of `with`, such as `{ isolationLevel: 'serializable' }`. */
  readonly transaction?: object
}

/**
 * A guard in the transactions of Knex: PostgreSQL (`pg`) or MySQL (`mysql2`).
 * @example
 * const guard = fence<Knex.Transaction>(knex)
 * await knex.transaction(async (trx) => {
 *   await guard.enter(trx, hold)
 *   await trx('invoice').where({ id: 42 }).increment('total', 7)
 * })
 */
export function fence<Tx extends KnexTransaction>(
  knex: KnexDatabase,
  options: KnexGuardOptions = {},
): MapperGuard<Tx, KnexTransaction> {
  if (typeof knex?.transaction !== 'function') throw new InvalidError('a guard for Knex takes a knex')
  return mapperGuard<KnexTransaction, KnexTransaction>(
    {
      run: async (trx, text) => await trx.raw(text),
      isTransaction: (trx) => trx?.isTransaction === true,
      begin: <T>(body: (trx: KnexTransaction) => Promise<T>) =>
        knex.transaction((trx: KnexTransaction) => body(trx), options.transaction) as Promise<T>,
    },
    options,
  ) as unknown as MapperGuard<Tx, KnexTransaction>
}
