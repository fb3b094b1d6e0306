import type { Statement } from './statement.js'

export type Row = Readonly<Record<string, unknown>>

/**
 * A guard's work on a database: a generator that yields statements and receives their rows. Adapters run it over a driver, so
 * that the rules exist once for all synchronous and asynchronous drivers.
 */
export type Steps<T> = Generator<Statement, T, readonly Row[]>

/** Runs steps over an asynchronous driver. */
export async function runSteps<T>(steps: Steps<T>, run: (statement: Statement) => Promise<readonly Row[]>): Promise<T> {
  let next = steps.next()
  while (!next.done) next = steps.next(await run(next.value))
  return next.value
}

/** Runs steps over a synchronous driver. */
export function runStepsSync<T>(steps: Steps<T>, run: (statement: Statement) => readonly Row[]): T {
  let next = steps.next()
  while (!next.done) next = steps.next(run(next.value))
  return next.value
}

/** Converts a 64-bit integer that a driver returned as text or bigint. */
export function bigintOf(value: unknown): bigint {
  if (typeof value === 'bigint') return value
  return BigInt(String(value))
}
