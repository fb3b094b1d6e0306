/** A rule of the program itself is broken: the member stops, since going on could do harm. */
export class InvariantError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'InvariantError'
  }
}

/** Stays on in production. `message` carries the numbers that one needs to understand the failure. */
export function assert(condition: boolean, message: string | (() => string)): asserts condition {
  if (!condition) throw new InvariantError(typeof message === 'string' ? message : message())
}
