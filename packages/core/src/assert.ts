/** A broken invariant: the state can no longer be trusted, and the member that sees it must stop. */
export class InvariantError extends Error {
  constructor(message: string) {
    super(`broken invariant: ${message}`)
    this.name = 'InvariantError'
  }
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message)
}
