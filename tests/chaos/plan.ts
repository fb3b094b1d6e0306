import type { FaultOf } from '@leasehold/lab'
import { SeededRandom } from './random.js'

export type LinkMode = 'cut' | 'clog' | 'forget' | 'slow'

/**
 * A fault of the shared vocabulary. `afterMs` counts from the beginning of its storm; `forMs` is how long it lasts. `target`: a
 * member by name, or `leader` or `follower`: the member that leads, or one that does not, when the fault begins.
 */
export type Fault = { readonly afterMs: number; readonly forMs: number } & (
  | FaultOf<'kill' | 'pause' | 'restart' | 'killAfterAck' | 'killAll' | 'transfer' | 'replace' | 'split'>
  | Pick<FaultOf<'killUnsynced'>, 'kind' | 'target'>
  /** Of the disk that can be filled, if there is one. */
  | Pick<FaultOf<'fullDisk'>, 'kind'>
  /** The links to and from the target: one way or both. */
  | (FaultOf<'isolate'> & { readonly ways: 'in' | 'out' | 'both'; readonly mode: LinkMode })
  /** Between two members. */
  | (FaultOf<'link'> & {
      readonly from: string
      readonly to: string
      readonly twoWay: boolean
      readonly mode: LinkMode
    })
  /** Of the processes of clients. */
  | { readonly kind: 'pauseClients' | 'killClient' }
)

/** Faults that overlap. After the last one the service must recover by itself. */
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
  killUnsynced: 3,
  killAfterAck: 3,
  killAll: 1.5,
  pause: 2.5,
  restart: 2,
  transfer: 2,
  replace: 1.2,
  isolate: 5,
  link: 3,
  split: 1.5,
  fullDisk: 0.8,
  pauseClients: 2,
  killClient: 1,
} as const satisfies Partial<Record<Fault['kind'], number>>

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
      if (fault.kind === 'replace' && faults.some(({ kind }) => kind === 'replace')) continue
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
    case 'killUnsynced':
      return { kind, ...times, target: target(random, members) }
    case 'pause':
      return {
        kind,
        afterMs,
        forMs: random.chance(0.3) ? STOP_MS_MAX : forMs,
        target: random.chance(0.7) ? 'leader' : target(random, members),
      }
    case 'isolate':
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
      const ends = { from: memberName(from), to: memberName(to) }
      return { kind, ...times, ...ends, twoWay: random.chance(0.5), mode: mode(random) }
    }
    case 'split': {
      const names = [...Array(members).keys()].map(memberName)
      const left = names.filter(() => random.chance(0.5))
      return { kind, ...times, left, right: names.filter((name) => !left.includes(name)) }
    }
    case 'killAfterAck':
      return { kind, ...times, target: 'leader' }
    case 'replace':
      return { kind, ...times, target: 'follower' }
    case 'transfer':
      return { kind, afterMs, forMs: MOMENT_MS, target: 'follower' }
    case 'killClient':
      return { kind, afterMs, forMs: MOMENT_MS }
    default:
      return { kind, ...times }
  }
}

function target(random: SeededRandom, members: number): string {
  const drawn = random.next()
  if (drawn < 0.5) return 'leader'
  return drawn < 0.7 ? 'follower' : memberName(random.between(0, members - 1))
}

function mode(random: SeededRandom): LinkMode {
  return random.weighted({ cut: 3, clog: 2, forget: 2, slow: 1.5 })
}

/** One line for people. */
export function describeFault(fault: Fault): string {
  const seconds = `${(fault.forMs / 1000).toFixed(1)} s`
  switch (fault.kind) {
    case 'kill':
    case 'killUnsynced':
    case 'killAfterAck':
    case 'pause':
    case 'restart':
    case 'replace':
      return `${fault.kind} ${targetText(fault.target)} for ${seconds}`
    case 'isolate':
      return `${fault.mode} ${fault.ways === 'both' ? 'all links of' : `${fault.ways}going links of`} ${targetText(fault.target)} for ${seconds}`
    case 'link':
      return `${fault.mode} ${fault.from} ${fault.twoWay ? '<->' : '->'} ${fault.to} for ${seconds}`
    case 'split':
      return `split {${fault.left.join(' ')}} | {${fault.right.join(' ')}} for ${seconds}`
    case 'transfer':
    case 'killClient':
      return fault.kind
    default:
      return `${fault.kind} for ${seconds}`
  }
}

function targetText(target: string): string {
  return target === 'leader' || target === 'follower' ? `the ${target}` : target
}

export function memberName(place: number): string {
  return `n${place + 1}`
}
