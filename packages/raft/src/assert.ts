/** A broken invariant: the log or the votes can no longer be trusted, and the member must stop. */
export class RaftInvariantError extends Error {
  constructor(message: string) {
    super(`broken invariant: ${message}`)
    this.name = 'RaftInvariantError'
  }
}

export function assert(condition: boolean, message: () => string): asserts condition {
  if (!condition) throw new RaftInvariantError(message())
}
