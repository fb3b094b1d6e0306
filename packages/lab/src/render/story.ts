import type { ScenarioResult } from '../scenarios/index.js'

/** A stretch of time on a lane, in seconds. */
export interface Stretch {
  readonly who: string
  readonly from: number
  readonly to: number
}

export interface Lease extends Stretch {
  readonly lock: string
  readonly token: string | undefined
  /** How it ended; undefined: it had not. */
  readonly end: string | undefined
}

export type Stop = Stretch & { readonly kind: 'paused' | 'down' }

/** A happening of the timeline, with its second. */
export type Moment = ScenarioResult['timeline'][number]

/** What members are to each other, whether they run or not. */
const ROLES: readonly string[] = ['leader', 'follower']

/** Seconds that a message must be under way to be worth a word. */
const SLOW_SECONDS = 0.5

/** The stretches in which clients called a lock theirs. */
export function leasesOf(result: ScenarioResult): Lease[] {
  return result.timeline.flatMap((moment) => {
    if (moment.kind !== 'lease-begin') return []
    const end = result.timeline.find((other) => other.kind === 'lease-end' && other.id === moment.id)
    const { who, lock, token, at } = moment
    const how = end?.kind === 'lease-end' ? end.text : undefined
    return [{ who, lock, token, from: at, to: end?.at ?? result.until, end: how }]
  })
}

/** When a process did not run. */
export function stopsOf(result: ScenarioResult): Stop[] {
  return result.timeline.flatMap((moment, i) => {
    if (moment.kind !== 'process' || (moment.state !== 'paused' && moment.state !== 'down')) return []
    const next = result.timeline
      .slice(i + 1)
      .find((other) => other.kind === 'process' && other.who === moment.who && !ROLES.includes(other.state))
    return [{ who: moment.who, kind: moment.state, from: moment.at, to: next?.at ?? result.until }]
  })
}

export interface Leading {
  readonly who: string
  readonly at: number
  readonly text: string
}

/** When members began to lead. The leader at second 0 is listed with that second. */
export function leadersOf(result: ScenarioResult): Leading[] {
  const all = result.timeline.flatMap((moment) =>
    moment.kind === 'process' && moment.state === 'leader'
      ? [{ who: moment.who, at: moment.at, text: moment.text ?? 'leads' }]
      : [],
  )
  const before = all.findLast(({ at }) => at < 0)
  const after = all.filter(({ at }) => at >= 0)
  return before === undefined ? after : [{ ...before, at: 0 }, ...after]
}

/** Stretches in which two clients called the same lock theirs. */
export function overlapsOf(result: ScenarioResult): Stretch[] {
  const leases = leasesOf(result)
  return leases.flatMap((one, i) =>
    leases.slice(i + 1).flatMap((other) => {
      const from = Math.max(one.from, other.from)
      const to = Math.min(one.to, other.to)
      if (one.lock !== other.lock || one.who === other.who || from >= to) return []
      return [one, other].map(({ who }) => ({ who, from, to }))
    }),
  )
}

/** What a reader should be told of; the small change of a protocol is left out. */
export function isTelling(moment: Moment): boolean {
  if (moment.at < -0.000_001 || moment.kind === 'lease-begin') return false
  if (moment.kind === 'process') return ROLES.includes(moment.state)
  // A client says itself that it releases a lock, or learns that it is lost.
  if (moment.kind === 'lease-end') return moment.text !== 'released' && moment.text !== 'lost'
  if (moment.kind !== 'message') return true
  return moment.outcome === 'arrived' && (moment.atUs - moment.sentUs) / 1_000_000 > SLOW_SECONDS
}

const EPOCH_BITS = 48n

/**
 * Tokens for people. A token of the service is epoch × 2^48 + a counter; within one epoch the counter says it all, and
 * with several it is shown as `epoch:counter`.
 */
export function tokenWords(result: ScenarioResult): (token: string) => string {
  const tokens = result.timeline.flatMap((moment) =>
    'token' in moment && moment.token !== undefined ? [moment.token] : [],
  )
  const epochs = new Set(tokens.map((token) => BigInt(token) >> EPOCH_BITS).filter((epoch) => epoch > 0n))
  return (token) => {
    const value = BigInt(token)
    const epoch = value >> EPOCH_BITS
    const counter = value - (epoch << EPOCH_BITS)
    if (epochs.size <= 1) return String(counter)
    return `${epoch}:${counter}`
  }
}

export function actorOf(moment: Moment): string {
  switch (moment.kind) {
    case 'message':
      return moment.from
    case 'resource':
      return moment.resource
    case 'violation':
      return ''
    default:
      return moment.who ?? ''
  }
}

/** One happening as a sentence without its subject. */
export function sentenceOf(moment: Moment, token: (text: string) => string): string {
  switch (moment.kind) {
    case 'client':
      return moment.token === undefined ? moment.text : `${moment.text}, token ${token(moment.token)}`
    case 'message':
      return `“${moment.label}” to ${moment.to} arrives, ${((moment.atUs - moment.sentUs) / 1_000_000).toFixed(1)} s after it was sent`
    case 'resource':
      return resourceWords(moment, token)
    case 'lease-end':
      return moment.text
    case 'violation':
      return `${moment.rule}: ${words(moment.text, token)}`
    case 'process':
      return moment.text ?? moment.state
    default:
      return 'text' in moment ? moment.text : ''
  }
}

function resourceWords(moment: Moment & { kind: 'resource' }, token: (text: string) => string): string {
  const carried = moment.token === undefined ? '' : ` (token ${token(moment.token)})`
  const who = `${moment.by}${carried}`
  if (!moment.accepted) {
    const mark = moment.mark === undefined ? '' : `: it has seen token ${token(moment.mark)}`
    return `refuses the ${moment.action} of ${who}${mark}`
  }
  switch (moment.action) {
    case 'write':
      return `takes the write of ${who}: now ${moment.value}`
    case 'open':
      return `is opened by ${who}, which raises the mark: ${moment.value}`
    case 'read':
      return `is read by ${who}: ${moment.value}`
    case 'verify':
      return `asks the service about the token of ${who}: it is the present one`
    case 'effect':
      return `does what ${who} wanted`
  }
}

/** Long tokens in a text, as people read them. */
export function words(text: string, token: (text: string) => string): string {
  return text.replace(/\b[0-9]{15,19}\b/g, (long) => token(long))
}

/** How the run came out, in a few words. */
export function verdictOf(result: ScenarioResult): {
  readonly kind: 'shown' | 'clean' | 'wrong'
  readonly text: string
} {
  if (!result.ok) return { kind: 'wrong', text: 'not as expected' }
  const { violations } = result.observed
  if (violations.length === 0) return { kind: 'clean', text: 'no violation, as expected' }
  return { kind: 'shown', text: `violation shown, as expected: ${violations.join(', ')}` }
}
