import type { Statement } from './statement.js'

export type Row = Readonly<Record<string, unknown>>

/**
 * A guard's work on a database: yields statements, is given their rows, and decides. The adapters run it over a driver,
 * so that the rules exist once, whatever the driver is called and whether it answers at once or later.
 */
export type Steps<T> = Generator<Statement, T, readonly Row[]>

/** Runs steps over a driver that answers later. */
export async function runSteps<T>(steps: Steps<T>, run: (statement: Statement) => Promise<readonly Row[]>): Promise<T> {
  let next = steps.next()
  while (!next.done) next = steps.next(await run(next.value))
  return next.value
}

/** Runs steps over a driver that answers at once. */
export function runStepsSync<T>(steps: Steps<T>, run: (statement: Statement) => readonly Row[]): T {
  let next = steps.next()
  while (!next.done) next = steps.next(run(next.value))
  return next.value
}

/** A 64-bit integer that was read as text (or as bigint, by a driver set to do so). */
export function bigintOf(value: unknown): bigint {
  if (typeof value === 'bigint') return value
  return BigInt(String(value))
}
