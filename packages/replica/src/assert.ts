import { InvariantError } from '@leasehold/core'

/** Stays on in production: a broken invariant stops the member. `message` carries the numbers that explain it. */
export function assert(condition: boolean, message: string | (() => string)): asserts condition {
  if (!condition) throw new InvariantError(typeof message === 'string' ? message : message())
}
