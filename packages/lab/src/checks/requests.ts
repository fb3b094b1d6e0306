import type { Command, Push, Result, SessionId } from '@leasehold/core'
import type { Violations } from './violation.js'

/** Every numbered request takes effect once: a repeat has the first answer, or says that it has expired. */
export class RequestChecks {
  private readonly effects = new Map<SessionId, Map<number, string>>()
  repeats = 0

  constructor(private readonly violations: Violations) {}

  entry(commands: readonly Command[], results: readonly Result[], pushes: readonly Push[]): void {
    commands.forEach((command, i) => {
      const effect = effectOf(results[i] as Result)
      if (!('request' in command) || command.request === undefined || command.session === undefined) return
      if (effect !== undefined) this.note(command.session, command.request, effect)
    })
    for (const { session, change } of pushes) {
      if (change?.kind === 'granted') this.note(session, change.request, `hold ${change.grant.hold}`)
    }
  }

  ended(session: SessionId): void {
    this.effects.delete(session)
  }

  private note(session: SessionId, request: number, effect: string): void {
    let known = this.effects.get(session)
    if (!known) {
      known = new Map()
      this.effects.set(session, known)
    }
    const before = known.get(request)
    if (before === undefined) known.set(request, effect)
    else if (before === effect) this.repeats++
    else this.violations.report('I8', `request ${request} of session ${session} was ${before}, and then ${effect}`)
  }
}

function effectOf(result: Result): string | undefined {
  if (result.kind === 'granted') return `hold ${result.grant.hold}`
  if (result.kind === 'ended') return `hold ${result.hold}`
  if (result.kind === 'put') return `version ${result.version}`
  return undefined
}
