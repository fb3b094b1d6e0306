import { describe, expect, it } from 'vitest'
import { type Command, type Index, LockState, type LockRequest, type Millis, type SessionId } from '../../src/index.js'
import { checkAgreement } from './agreement.js'
import { InvariantChecker } from './invariants.js'
import { Model } from './model.js'
import { hex } from './script.js'

/*
 * Everything that few clients can do to two locks in a few steps. A place that was reached before, in another way but
 * with the same holds, waiters, delays and remaining times, is not searched again: ids and counters only have to grow.
 * EXHAUSTIVE_DEPTH and EXHAUSTIVE_SESSIONS make the search longer.
 */

const DEPTH = Number(process.env.EXHAUSTIVE_DEPTH ?? 6)
const SESSIONS = Number(process.env.EXHAUSTIVE_SESSIONS ?? 2)
const TTL = 400
/** More holds and waiters of one client show nothing new. */
const EACH = 2
/** The invariants follow from the agreement, which is checked at every step; looked at from outside they cost much more. */
const CHECK_EVERY = 20
/** How far a view of the place has been written down when a step is taken: at different points of the snapshot. */
const VIEW_WORK = [0, 1, 17, 33, 60, 90, 120, 150, 180, 220, 260, 310, 400]

/** A step, in words that do not depend on the ids of the moment. */
type Step =
  | {
      readonly kind: 'acquire'
      readonly who: number
      readonly locks: readonly LockRequest[]
      readonly waitMs: number
      readonly delayMs: number
    }
  | { readonly kind: 'release' | 'cancel' | 'renew'; readonly who: number }
  | { readonly kind: 'steal' }
  | { readonly kind: 'time' }

const x: LockRequest = { name: 'x', mode: 'exclusive' }
const y: LockRequest = { name: 'y', mode: 'exclusive' }
const shared: LockRequest = { name: 'x', mode: 'shared' }

function alphabet(): Step[] {
  const steps: Step[] = [{ kind: 'steal' }, { kind: 'time' }]
  for (let who = 0; who < SESSIONS; who++) {
    const acquire = (locks: LockRequest[], waitMs = -1, delayMs = 0): Step => ({
      kind: 'acquire',
      who,
      locks,
      waitMs,
      delayMs,
    })
    // Not all for everybody: the clients are different enough to meet in every way.
    steps.push(acquire([x]), acquire([shared]), acquire([x, y]), { kind: 'release', who })
    if (who === 0) steps.push(acquire([y], -1, 100), { kind: 'cancel', who })
    else steps.push(acquire([x], 100, 50), { kind: 'renew', who })
  }
  return steps
}

class Place {
  constructor(
    readonly state: Uint8Array,
    readonly model: Model,
    readonly requests: readonly number[],
    /** The steps that led here, for people. */
    readonly path: string,
    readonly depth: number,
  ) {}
}

/** What the future can depend on, with ids as their ranks. */
function shapeOf(model: Model): string {
  const rank = new Map<number, number>()
  const ranked = (id: number): number => {
    if (!rank.has(id)) rank.set(id, rank.size)
    return rank.get(id) as number
  }
  const sessions = model.sessions.map((one) => [one.id, one.expires - model.now])
  const holds = model.holds.map((hold) => [
    hold.session,
    hold.delay,
    hold.locks.map((one) => [one.name, one.mode, ranked(one.token)]),
  ])
  const waiters = model.waiters.map(({ command, due }) => [
    command.session,
    command.locks,
    command.lockDelayMs,
    due < 0 ? due : due - model.now,
  ])
  const delays = model.delays.map((delay) => [delay.due - model.now, delay.locks.map((one) => [one.name, one.mode])])
  return JSON.stringify([sessions, holds, waiters, delays])
}

/** The command of a step here, or undefined when it has no object. */
function commandOf(step: Step, place: Place, sessions: readonly SessionId[]): Command | undefined {
  const { model, requests } = place
  if (step.kind === 'time') return undefined
  if (step.kind === 'steal') {
    const hold = model.holds[0]
    return hold === undefined ? undefined : { kind: 'steal', hold: hold.id as never, actor: '', reason: '' }
  }
  const session = sessions[step.who] as SessionId
  if (model.session(session) === undefined) return undefined
  const numbered = { session, request: (requests[step.who] as number) + 1, ack: { lowest: 1, also: [] } }
  switch (step.kind) {
    case 'acquire': {
      const mine = [...model.holds.map((one) => one.session), ...model.waiters.map((one) => one.command.session)]
      if (mine.filter((one) => one === session).length >= EACH) return undefined
      const { locks, waitMs, delayMs } = step
      const rest = { persistent: false, portable: false, data: new Uint8Array(0) }
      return { kind: 'acquire', ...numbered, locks, waitMs, lockDelayMs: delayMs as Millis, ...rest }
    }
    case 'release': {
      const hold = model.holds.find((one) => one.session === session)
      return hold === undefined ? undefined : { kind: 'release', ...numbered, hold: hold.id as never }
    }
    case 'cancel': {
      const waiter = model.waiters.find((one) => one.command.session === session)
      return waiter === undefined ? undefined : { kind: 'cancel', ...numbered, target: waiter.command.request }
    }
    case 'renew':
      return { kind: 'renew', session }
  }
}

describe(`${SESSIONS} sessions, 2 locks, every sequence of ${DEPTH} steps`, () => {
  it('keep the invariants and agree with the model', { timeout: 600_000 }, () => {
    const first = LockState.create({ epoch: 1, limits: { holdsPerSession: EACH } })
    const model = new Model(1, { holdsPerSession: EACH })
    const openings: Command[] = Array.from({ length: SESSIONS }, (_, i) => {
      return {
        kind: 'openSession',
        nonce: hex(i + 1),
        secret: hex(i + 1),
        ttlMs: (TTL + 100 * i) as Millis,
        client: '',
        local: false,
      }
    })
    const opening = { at: 1000 as Millis, commands: openings }
    const opened = first.apply(opening, 1 as Index)
    model.apply(opening)
    const sessions = opened.results.map((one) => (one.kind === 'opened' ? one.session : (0 as SessionId)))
    let frontier = [
      new Place(
        first.snapshot(),
        model,
        sessions.map(() => 0),
        '',
        0,
      ),
    ]
    const seen = new Set([shapeOf(model)])
    const letters = alphabet()
    const steps = { taken: 0 }
    for (let depth = 1; depth <= DEPTH; depth++) {
      const next: Place[] = []
      for (const place of frontier) {
        for (const step of letters) {
          const command = commandOf(step, place, sessions)
          const due = place.model.nextDeadline()
          if (command === undefined && (step.kind !== 'time' || due === undefined)) continue
          const reached = walk(place, step, command, due, steps)
          const shape = shapeOf(reached.model)
          if (seen.has(shape)) continue
          seen.add(shape)
          next.push(reached)
        }
      }
      frontier = next
    }
    if (process.env.EXHAUSTIVE_TALLY === '1') console.log(`${seen.size} places, ${steps.taken} steps`)
    expect(seen.size).toBeGreaterThan(DEPTH < 6 ? 4 ** DEPTH : 4000)
  })
})

function walk(
  place: Place,
  step: Step,
  command: Command | undefined,
  due: number | undefined,
  steps: { taken: number },
): Place {
  const state = LockState.restore(place.state)
  const model = place.model.clone()
  const at = (step.kind === 'time' ? (due as number) : model.now) as Millis
  const entry = { at, commands: command === undefined ? [] : [command] }
  const path = `${place.path} ${JSON.stringify(step)}`
  const view = state.beginSnapshot()
  view.step(VIEW_WORK[steps.taken % VIEW_WORK.length] as number)
  const applied = state.apply(entry, (place.depth + 2) as Index)
  while (!view.step(1000));
  if (Buffer.compare(Buffer.concat(view.take()), place.state) !== 0) throw new Error(`another view after ${path}`)
  checkAgreement(state, applied, model, model.apply(entry), path)
  const snapshot = state.snapshot()
  if (steps.taken++ % CHECK_EVERY === 0) new InvariantChecker().check(state, applied.events)
  const requests = place.requests.map((last, i) =>
    command !== undefined && 'who' in step && step.who === i ? last + 1 : last,
  )
  return new Place(snapshot, model, requests, path, place.depth + 1)
}
