/** A broken invariant of the core: the member must stop, since its log or its votes can no longer be trusted. */
export class RaftInvariantError extends Error {
  constructor(message: string) {
    super(`broken invariant: ${message}`)
    this.name = 'RaftInvariantError'
  }
}

export function assert(condition: boolean, message: () => string): asserts condition {
  if (!condition) throw new RaftInvariantError(message())
}
