/** A broken invariant: the state can no longer be trusted, and the member must stop. */
export class InvariantError extends Error {
  constructor(message: string) {
    super(`broken invariant: ${message}`)
    this.name = 'InvariantError'
  }
}

/**
 * Throws `InvariantError` unless `condition` holds; also in production. `message` has the values that explain the failure;
 * a function is called only then.
 */
export function assert(condition: boolean, message: string | (() => string)): asserts condition {
  if (!condition) throw new InvariantError(typeof message === 'string' ? message : message())
}
