import { SeededRandom } from './random.js'

/** Who a fault hits: a member by its place in the list, or whoever leads (or does not) when the fault begins. */
export type Target = 'leader' | 'follower' | number

export type LinkMode = 'cut' | 'clog' | 'swallow' | 'slow'

/** One fault. `afterMs` counts from the beginning of its storm; `forMs` is how long it lasts. */
export type Fault = { readonly afterMs: number; readonly forMs: number } & (
  | { readonly kind: 'kill' | 'stop' | 'restart'; readonly target: Target }
  /** Killed right between a write and its sync. */
  | { readonly kind: 'kill-unsynced'; readonly target: Target }
  | { readonly kind: 'kill-after-ack' | 'kill-all' | 'transfer' | 'wipe' | 'full-disk' }
  /** `to` and `from` the target: one way or both. */
  | { readonly kind: 'links'; readonly target: Target; readonly ways: 'in' | 'out' | 'both'; readonly mode: LinkMode }
  /** Between two members. */
  | {
      readonly kind: 'link'
      readonly from: number
      readonly to: number
      readonly twoWay: boolean
      readonly mode: LinkMode
    }
  /** The members of one side do not hear those of the other. */
  | { readonly kind: 'halves'; readonly side: readonly number[] }
  | { readonly kind: 'stop-clients' | 'kill-client' }
)

/** Faults that overlap. When all are over, the service must come back by itself. */
export interface Storm {
  readonly faults: readonly Fault[]
  /** Quiet time after the checks at its end. */
  readonly calmMs: number
}

const FAULTS_MAX = 3
const STOP_MS_MAX = 20_000
/** A fault whose length says nothing (a transfer, a kill of a client) still takes its turn. */
const MOMENT_MS = 200

const WEIGHTS = {
  kill: 5,
  'kill-unsynced': 3,
  'kill-after-ack': 3,
  'kill-all': 1.5,
  stop: 2.5,
  restart: 2,
  transfer: 2,
  wipe: 1.2,
  links: 5,
  link: 3,
  halves: 1.5,
  'full-disk': 0.8,
  'stop-clients': 2,
  'kill-client': 1,
}

/** The storms of a run, without end: the same for the same seed and size. */
export function* storms(seed: number, members: number): Generator<Storm, never, void> {
  const random = new SeededRandom(seed)
  for (;;) {
    const count = random.between(1, FAULTS_MAX)
    const faults: Fault[] = []
    let afterMs = 0
    for (let i = 0; i < count; i++) {
      const fault = draw(random, members, afterMs)
      // One disk at a time: two lost ones may be a majority, which nothing can survive.
      if (fault.kind === 'wipe' && faults.some(({ kind }) => kind === 'wipe')) continue
      faults.push(fault)
      afterMs += random.between(200, 3_000)
    }
    yield { faults, calmMs: random.between(500, 2_500) }
  }
}

function draw(random: SeededRandom, members: number, afterMs: number): Fault {
  const kind = random.weighted(WEIGHTS)
  const forMs = random.between(500, 6_000)
  const times = { afterMs, forMs }
  switch (kind) {
    case 'kill':
    case 'restart':
    case 'kill-unsynced':
      return { kind, ...times, target: target(random, members) }
    case 'stop':
      return {
        kind,
        afterMs,
        forMs: random.chance(0.3) ? STOP_MS_MAX : forMs,
        target: random.chance(0.7) ? 'leader' : target(random, members),
      }
    case 'links':
      return {
        kind,
        ...times,
        target: target(random, members),
        ways: random.pick(['in', 'out', 'both']),
        mode: mode(random),
      }
    case 'link': {
      const from = random.between(0, members - 1)
      const to = (from + random.between(1, members - 1)) % members
      return { kind, ...times, from, to, twoWay: random.chance(0.5), mode: mode(random) }
    }
    case 'halves':
      return { kind, ...times, side: [...Array(members).keys()].filter(() => random.chance(0.5)) }
    case 'transfer':
    case 'kill-client':
      return { kind, afterMs, forMs: MOMENT_MS }
    default:
      return { kind, ...times }
  }
}

function target(random: SeededRandom, members: number): Target {
  const drawn = random.next()
  if (drawn < 0.5) return 'leader'
  return drawn < 0.7 ? 'follower' : random.between(0, members - 1)
}

function mode(random: SeededRandom): LinkMode {
  return random.weighted({ cut: 3, clog: 2, swallow: 2, slow: 1.5 })
}

/** One line for people. */
export function describeFault(fault: Fault): string {
  const seconds = `${(fault.forMs / 1000).toFixed(1)} s`
  switch (fault.kind) {
    case 'kill':
    case 'kill-unsynced':
    case 'stop':
    case 'restart':
      return `${fault.kind} ${targetText(fault.target)} for ${seconds}`
    case 'links':
      return `${fault.mode} ${fault.ways === 'both' ? 'all links of' : `${fault.ways}going links of`} ${targetText(fault.target)} for ${seconds}`
    case 'link':
      return `${fault.mode} ${memberName(fault.from)} ${fault.twoWay ? '<->' : '->'} ${memberName(fault.to)} for ${seconds}`
    case 'halves':
      return `halves {${fault.side.map(memberName).join(' ')}} | the others for ${seconds}`
    case 'transfer':
    case 'kill-client':
      return fault.kind
    default:
      return `${fault.kind} for ${seconds}`
  }
}

function targetText(target: Target): string {
  return typeof target === 'number' ? memberName(target) : `the ${target}`
}

export function memberName(place: number): string {
  return `n${place + 1}`
}
