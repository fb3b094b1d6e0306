import type { Command, Event, Fence, HeldLock, HoldId, Result, SessionId } from '@leasehold/core'
import type { Violations } from './violation.js'

interface Standing {
  readonly session: SessionId
  readonly locks: readonly HeldLock[]
}

/**
 * A fenced write of a register takes effect only while its writer has the hold that fences it, and versions only grow.
 * Judged by the events of all holds and writes, in their order.
 */
export class RegisterChecker {
  readonly #holds = new Map<HoldId, Standing>()
  readonly #versions = new Map<string, bigint>()

  readonly #violations: Violations

  constructor(violations: Violations) {
    this.#violations = violations
  }

  /** The service was restored: all holds have ended; what is written from now on has greater versions still. */
  restored(): void {
    this.#holds.clear()
  }

  entry(commands: readonly Command[], results: readonly Result[], events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind === 'held') this.#holds.set(event.grant.hold, { session: event.session, locks: event.grant.locks })
      else if (event.kind === 'freed') this.#holds.delete(event.hold)
      else if (event.kind === 'put') this.#written(event, writerOf(commands, results, event))
      else if (event.kind === 'deleted') {
        const command = commands.find((one) => one.kind === 'delete' && one.key === event.key)
        if (command?.kind === 'delete') this.#fenced(event.key, command)
      }
    }
  }

  #written(event: Event & { kind: 'put' }, command: Command | undefined): void {
    const { key, version } = event
    const before = this.#versions.get(key) ?? 0n
    if (version <= before) this.#violations.report('I3', `register ${key} has version ${version} after ${before}`)
    this.#versions.set(key, version)
    if (command?.kind === 'put') this.#fenced(key, command)
  }

  #fenced(key: string, { fence, session }: { readonly fence?: Fence; readonly session?: SessionId }): void {
    if (fence === undefined) return
    const hold = this.#holds.get(fence.hold)
    const lock = hold?.locks.find(({ name }) => name === fence.lock)
    if (hold?.session === session && lock?.mode === 'exclusive') return
    const why = hold === undefined ? 'which has ended' : 'which does not fence it'
    this.#violations.report('I3', `register ${key} takes a write under hold ${fence.hold} of ${fence.lock}, ${why}`)
  }
}

function writerOf(
  commands: readonly Command[],
  results: readonly Result[],
  { version }: Event & { kind: 'put' },
): Command | undefined {
  return commands.find((_, i) => {
    const result = results[i]
    return result?.kind === 'put' && result.version === version
  })
}
