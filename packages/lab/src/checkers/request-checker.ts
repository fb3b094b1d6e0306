import type { Command, Push, Result, SessionId } from '@leasehold/core'
import type { Violations } from './violation.js'

/** Every numbered request takes effect once: a repeat has the first answer, or says that it has expired. */
export class RequestChecker {
  readonly #effects = new Map<SessionId, Map<number, string>>()
  repeats = 0

  readonly #violations: Violations

  constructor(violations: Violations) {
    this.#violations = violations
  }

  entry(commands: readonly Command[], results: readonly Result[], pushes: readonly Push[]): void {
    // First: what was granted in this entry may be cancelled in it, and what was cancelled is never granted.
    for (const { session, change } of pushes) {
      if (change?.kind === 'granted') this.#note(session, change.request, `hold ${change.grant.hold}`)
    }
    commands.forEach((command, i) => {
      const result = results[i] as Result
      if (!('request' in command) || command.request === undefined || command.session === undefined) return
      const effect = effectOf(command, result)
      if (effect !== undefined) this.#note(command.session, command.request, effect)
      if (command.kind === 'cancel' && result.kind === 'cancelled' && result.was !== 'ended') {
        this.#known(command.session).set(command.target, ABORTED)
      }
    })
  }

  /** All sessions have ended: the numbers of their ids may come again under the new epoch. */
  restored(): void {
    this.#effects.clear()
  }

  ended(session: SessionId): void {
    this.#effects.delete(session)
  }

  #note(session: SessionId, request: number, effect: string): void {
    const known = this.#known(session)
    const before = known.get(request)
    if (before === undefined) known.set(request, effect)
    else if (before === effect) this.repeats++
    // What was granted may have come to its end since.
    else if (!before.startsWith('hold') || effect.startsWith('hold'))
      this.#violations.report('I8', `request ${request} of session ${session} was ${before}, and then ${effect}`)
  }

  #known(session: SessionId): Map<number, string> {
    let known = this.#effects.get(session)
    if (!known) {
      known = new Map()
      this.#effects.set(session, known)
    }
    return known
  }
}

const ABORTED = 'refused (aborted)'
/** Refusals that say nothing of what was asked for: they are not kept. */
const NOT_KEPT = new Set(['expired-request', 'session-ended', 'invalid'])

function effectOf({ kind }: Command, result: Result): string | undefined {
  if (result.kind === 'granted') return `hold ${result.grant.hold}`
  if (result.kind === 'ended') return `hold ${result.hold}`
  if (result.kind === 'put') return `version ${result.version}`
  if (result.kind === 'refused') return NOT_KEPT.has(result.code) ? undefined : `refused (${result.code})`
  return kind === 'release' || kind === 'delete' ? result.kind : undefined
}
