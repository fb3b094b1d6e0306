import { InvalidError } from '@leasehold/core'
import { type MapperGuard, type MapperGuardOptions, mapperGuard } from './sql/mapper-guard.js'

export type { Fenced, Guard, OpenOptions } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { MapperGuard, MapperGuardOptions } from './sql/mapper-guard.js'

/** What a guard uses of the client of an interactive transaction of Prisma. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>
  $executeRawUnsafe(text: string, ...values: never[]): PromiseLike<number>
}

/** What a guard uses of Prisma's client. */
export interface PrismaDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the type of the transaction is taken from here
  $transaction(body: (tx: any) => Promise<any>, options?: any): Promise<any>
}

export interface PrismaGuardOptions extends MapperGuardOptions {
  /** Prisma's own settings for the transactions of `with`, such as `{ timeout: 20_000 }`. Prisma's default is 5 s. */
  readonly transaction?: object
}

/**
 * A guard in the interactive transactions of Prisma: PostgreSQL or MySQL. An array of operations cannot be guarded.
 * @example
 * const guard = fence<Prisma.TransactionClient>(prisma)
 * await prisma.$transaction(async (tx) => {
 *   await guard.enter(tx, hold)
 *   await tx.invoice.update({ where: { id: 42 }, data: { total: { increment: 7 } } })
 * })
 */
export function fence<Tx extends PrismaTransaction>(
  prisma: PrismaDatabase,
  options: PrismaGuardOptions = {},
): MapperGuard<Tx, PrismaTransaction> {
  if (typeof prisma?.$transaction !== 'function') throw new InvalidError('a guard for Prisma takes its client')
  return mapperGuard<PrismaTransaction, PrismaTransaction>(
    {
      run: async (tx, text, reads) => (reads ? await tx.$queryRawUnsafe(text) : await tx.$executeRawUnsafe(text)),
      isTransaction: (tx) =>
        typeof tx?.$queryRawUnsafe === 'function' &&
        typeof (tx as { $transaction?: unknown }).$transaction !== 'function',
      begin: <T>(body: (tx: PrismaTransaction) => Promise<T>) =>
        prisma.$transaction((tx: PrismaTransaction) => body(tx), options.transaction) as Promise<T>,
      driverError,
    },
    options,
  ) as unknown as MapperGuard<Tx, PrismaTransaction>
}

/** Prisma's codes that say something about the transaction or the connection. */
const CODES: Readonly<Record<string, string>> = {
  P2034: '40001',
  P1001: 'ECONNREFUSED',
  P1002: 'ETIMEDOUT',
  P1008: 'ETIMEDOUT',
  P1017: 'ECONNRESET',
}

/** An error with the code of the database in place of Prisma's. */
function driverError(error: unknown): unknown {
  const { code, meta, message } = (error ?? {}) as { code?: unknown; meta?: PrismaMeta; message?: string }
  if (typeof code !== 'string' || !/^P\d{4}$/.test(code)) return error
  const inner = meta?.driverAdapterError?.cause
  const original = inner?.originalCode ?? inner?.code ?? meta?.code ?? CODES[code]
  if (original === undefined) return error
  const text = inner?.originalMessage ?? meta?.message ?? message ?? code
  return Object.assign(new Error(text, { cause: error }), { code: original, detail: inner?.detail })
}

interface PrismaMeta {
  readonly code?: string
  readonly message?: string
  readonly driverAdapterError?: {
    readonly cause?: {
      readonly originalCode?: string
      readonly originalMessage?: string
      readonly code?: string
      readonly detail?: string
    }
  }
}
