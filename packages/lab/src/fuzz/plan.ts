import { RandomStream } from '../world/random.js'
import type { FaultOf, Weather } from '../faults/fault.js'
import { type DrawnFault, type DrawnKind, FAMILIES, type Family } from './drawn-fault.js'

export const PROFILES = ['swarm', 'liveness', 'storage', 'network', 'membership', 'holders', 'calm'] as const
export type Profile = (typeof PROFILES)[number]

/** Everything that decides a run: the same plan, the same run. It is data, so that a smaller one can be made of it. */
export interface Plan {
  readonly seed: number
  readonly profile: Profile
  readonly members: number
  readonly clients: number
  /** Names of locks that clients compete for. */
  readonly locks: number
  readonly ttlMs: number
  /** Mean pause of a client between two operations. */
  readonly thinkMs: number
  /** Mean time between reading and writing in a unit of work; default 5. */
  readonly workMs?: number
  readonly safetyMs: number
  readonly tickMs: number
  readonly electionTicks: number
  readonly snapshotBytes: number
  readonly blockingWrites: boolean
  /** Chances per thousand that a crash loses an unsynced sector, and keeps an unsynced change of the folder. */
  readonly diskLoss: number
  readonly folderKept: number
  readonly folderJournal: boolean
  readonly syncMs: number
  /** Drift of machines, in parts per million. */
  readonly drift: Readonly<Record<string, number>>
  /** Members that may lose data: never so many that the last good copy of something acknowledged is at stake. */
  readonly weak: readonly string[]
  /** The first epoch of the service; default 1. Tokens of high ones are beyond 2^53. */
  readonly epoch?: number
  /** Whether tokens are raised to the clock in each term; default: no. */
  readonly clockFloors?: boolean
  /** Whether clients keep a lock for long, beside what they do; default: no. */
  readonly keepers?: boolean
  /** Clients without a session, which read and watch only: they stay with a member that no longer leads. Default 0. */
  readonly observers?: number
  /** Most bytes of data that go with a hold: records of many sectors. Default 0. */
  readonly dataBytes?: number
  readonly faults: readonly DrawnFault[]
  /** What clients do; shares. */
  readonly work: Readonly<Record<Work, number>>
}

export const WORKS = [
  'unit',
  'register',
  'shared',
  'permit',
  'several',
  'try',
  'abort',
  'cas',
  'query',
  'handover',
  'bulk',
] as const
export type Work = (typeof WORKS)[number]

/** The machine of the store that units of work write to. */
const STORE = 'store'

/** Clocks of two machines differ by at most 5 %: each runs at most so much fast or slow. */
const DRIFT_MAX_PPM = 24_000

/** An epoch whose tokens as doubles would differ by a thousand at least. */
const EPOCH_HIGH = 20_000
/** Where members cease to lead, or are behind, there are more that look on. */
const OBSERVERS: Partial<Record<Profile, readonly number[]>> = { storage: [0], network: [1, 2], membership: [0, 1, 2] }

/** Draws a plan from its seed. */
export function planOf(seed: number, profile: Profile, members?: number): Plan {
  const draw = new RandomStream(seed, 'swarm', profile)
  const pick = <T>(items: readonly T[]): T => items[draw.below(items.length)] as T
  const count = members ?? pick([3, 3, 5])
  const names = Array.from({ length: count }, (_, i) => `N${i + 1}`)
  const clients = 2 + draw.below(4)
  const storage = profile === 'storage'
  const observers = pick(OBSERVERS[profile] ?? [0, 0, 0, 1])
  const clientNames = [
    ...Array.from({ length: clients }, (_, i) => `C${i + 1}`),
    ...Array.from({ length: observers }, (_, i) => `O${i + 1}`),
  ]
  // A short time of faults, one upon another, leaves a mess to come out of.
  const safetyMs = pick(profile === 'liveness' ? [5000, 8000, 12_000] : [15_000, 20_000, 30_000, 45_000])
  const shuffled = [...names].sort((a, b) => hashOf(seed, a) - hashOf(seed, b))
  const weak = shuffled.slice(0, (count - 1) >> 1)
  const drift = Object.fromEntries(
    [...names, ...clientNames].map((name) => [
      name,
      draw.chance(500_000) ? 0 : draw.below(2 * DRIFT_MAX_PPM) - DRIFT_MAX_PPM,
    ]),
  )
  // Draws of their own, so that those of the rest stay what they were.
  const more = new RandomStream(seed, 'swarm-more', profile)
  const base = {
    seed,
    profile,
    epoch: [1, 1, 1, 40, EPOCH_HIGH][more.below(5)] as number,
    keepers: more.chance(profile === 'holders' ? 800_000 : 400_000),
    members: count,
    clients,
    locks: 1 + draw.below(3),
    ttlMs: pick([1000, 2000, 5000, 10_000]),
    thinkMs: pick([20, 50, 100, 300]),
    safetyMs,
    tickMs: pick([20, 50, 50]),
    electionTicks: pick([10, 16, 16]),
    snapshotBytes: pick([4096, 16_384, 65_536, 1_000_000]),
    blockingWrites: draw.chance(500_000),
    diskLoss: pick([0, 200, 500, 1000]),
    folderKept: pick([0, 500, 900, 1000]),
    folderJournal: draw.chance(500_000),
    syncMs: pick([1, 1, 5, 20]),
    drift,
    clockFloors: new RandomStream(seed, 'swarm-floors', profile).chance(500_000),
    weak,
    observers,
    dataBytes: pick(storage ? [0, 600, 4096] : [0, 0, 0, 4096]),
    work: Object.fromEntries(
      WORKS.map((work) => [work, draw.chance(300_000) ? 0 : 1 + draw.below(work === 'bulk' && !storage ? 2 : 10)]),
    ) as Record<Work, number>,
  }
  if (profile === 'holders') return { ...base, ...holdersOf(draw, more, names, clientNames) }
  const families = familiesOf(profile, draw)
  const gaps = profile === 'liveness' ? [100, 200, 300] : [300, 800, 2000, 5000]
  const faults = scheduleOf({ ...base, names, clientNames, families, gaps, draw })
  const all = profile === 'calm' ? faults : [...faults, ...setBacksOf(more, base)].sort(byTime)
  return { ...base, faults: withRemoval(base, all) }
}

/** Disks that are set back, in some seeds: they need a quiet moment, so there are more of them than are carried out. */
function setBacksOf(more: RandomStream, { weak, safetyMs }: Pick<Plan, 'weak' | 'safetyMs'>): DrawnFault[] {
  if (weak.length === 0 || !more.chance(300_000)) return []
  return Array.from({ length: 1 + more.below(6) }, () => ({
    kind: 'setBack' as const,
    atMs: FIRST_FAULT_MS + more.below(safetyMs - FIRST_FAULT_MS),
    forMs: 200 + more.tail(3000),
    target: weak[more.below(weak.length)] as string,
  }))
}

function byTime(one: DrawnFault, other: DrawnFault): number {
  return one.atMs - other.atMs
}

function hashOf(seed: number, name: string): number {
  return new RandomStream(seed, 'weak', name).at(0)
}

/** Drawn apart from the rest, so that the other faults of a seed stay what they were. */
function withRemoval({ seed, profile, weak, safetyMs }: Omit<Plan, 'faults'>, faults: DrawnFault[]): DrawnFault[] {
  const draw = new RandomStream(seed, 'folders', profile)
  const target = weak[draw.below(Math.max(1, weak.length))]
  if (!REMOVES_FOLDERS.includes(profile) || target === undefined || !draw.chance(REMOVAL_PPM)) return faults
  const atMs = FIRST_FAULT_MS + draw.below(Math.max(1, safetyMs - FIRST_FAULT_MS))
  const removal: DrawnFault = { atMs, forMs: 200 + draw.below(4000), kind: 'removeFolder', target }
  return [...faults, removal].sort((a, b) => a.atMs - b.atMs)
}

const REMOVES_FOLDERS: readonly Profile[] = ['swarm', 'storage', 'membership']
const REMOVAL_PPM = 120_000

const BY_PROFILE: Partial<Record<Profile, readonly Family[]>> = {
  storage: ['crashes', 'boundaries', 'slowDisks', 'brokenDisks', 'damage'],
  network: ['partitions', 'links', 'pauses'],
  membership: ['membership', 'crashes', 'boundaries', 'partitions', 'operators'],
  calm: [],
}

function familiesOf(profile: Profile, draw: RandomStream): readonly Family[] {
  const own: readonly string[] = ['folders', 'rollbacks']
  const all = BY_PROFILE[profile] ?? (Object.keys(FAMILIES) as Family[]).filter((family) => !own.includes(family))
  // Some seeds have all of them, most have a few: a single kind goes deeper when it is alone.
  if (draw.chance(150_000)) return all
  return all.filter(() => draw.chance(450_000))
}

/**
 * Holders lose their locks in the middle of their work: they are stolen from, stand still, hear of it late, and what they
 * wrote comes late.
 */
function holdersOf(
  draw: RandomStream,
  more: RandomStream,
  names: readonly string[],
  clientNames: readonly string[],
): Pick<Plan, 'safetyMs' | 'ttlMs' | 'thinkMs' | 'workMs' | 'locks' | 'faults' | 'work'> {
  const pick = <T>(items: readonly T[]): T => items[draw.below(items.length)] as T
  const safetyMs = pick([6000, 9000, 12_000])
  const meanMs = pick([40, 80, 160])
  const faults: DrawnFault[] = []
  for (let atMs = FIRST_FAULT_MS + draw.tail(meanMs); atMs < safetyMs; atMs += 1 + draw.tail(meanMs)) {
    const at = { atMs, forMs: 50 + draw.tail(700) }
    const any = pick(clientNames)
    const client = more.chance(500_000) ? 'holder' : any
    const turn = draw.below(10)
    if (turn < 4) faults.push({ ...at, kind: 'steal' })
    else if (turn < 6) faults.push({ ...at, kind: 'clog', from: 'leader', to: client })
    else if (turn < 7) faults.push({ ...at, kind: 'clog', from: client, to: STORE })
    else if (turn < 8) faults.push({ ...at, kind: 'pause', target: client })
    else if (turn < 9) faults.push({ ...at, kind: 'reset', from: client, to: pick(names) })
    else faults.push({ ...at, kind: 'weather', profile: weatherOf(draw) })
  }
  const work = Object.fromEntries(WORKS.map((one) => [one, draw.below(4)])) as Record<Work, number>
  return {
    safetyMs,
    ttlMs: pick([1000, 1000, 2000]),
    thinkMs: pick([10, 20, 50]),
    workMs: pick([20, 100, 200]),
    locks: 1,
    faults,
    work: { ...work, unit: 6, register: 3 },
  }
}

interface Field {
  readonly names: readonly string[]
  readonly clientNames: readonly string[]
  readonly weak: readonly string[]
  readonly families: readonly Family[]
  /** Mean times between two faults, of which one is drawn. */
  readonly gaps: readonly number[]
  readonly safetyMs: number
  readonly draw: RandomStream
}

const ROT = ['log', 'log', 'log', 'snapshot', 'newestSnapshot', 'newestSnapshot', 'identity', 'mark'] as const
const FIRST_FAULT_MS = 1500
/** So long a member may take to come to the effect at which it dies, and to come back from both deaths. */
const UNSYNCED_FOR_MS = 5000
/** A disk that becomes full has this much room left, on average. */
const FULL_AFTER_BYTES = 20_000

function scheduleOf(field: Field): DrawnFault[] {
  const { draw, safetyMs, families, gaps } = field
  if (families.length === 0) return []
  const faults: DrawnFault[] = []
  const meanMs = gaps[draw.below(gaps.length)] as number
  for (let atMs = FIRST_FAULT_MS + draw.tail(meanMs); atMs < safetyMs; atMs += 1 + draw.tail(meanMs)) {
    const family = families[draw.below(families.length)] as Family
    const kinds: readonly DrawnKind[] = FAMILIES[family]
    const fault = faultOf(kinds[draw.below(kinds.length)] as DrawnKind, atMs, field)
    if (fault) faults.push(fault)
  }
  return faults
}

function faultOf(kind: DrawnKind, atMs: number, field: Field): DrawnFault | undefined {
  const { draw, names, clientNames } = field
  const pick = <T>(items: readonly T[]): T => items[draw.below(items.length)] as T
  const any = (): string => (draw.chance(200_000) ? 'leader' : pick(draw.chance(700_000) ? names : clientNames))
  const member = (): string => (draw.chance(400_000) ? 'leader' : pick(names))
  const forMs = 50 + draw.tail(draw.chance(250_000) ? 8000 : 1500)
  const at = { atMs, forMs }
  switch (kind) {
    case 'power':
    case 'kill':
    case 'pause':
    case 'suspend':
    case 'isolate':
      return { ...at, kind, target: any() }
    case 'effect':
      if (draw.chance(600_000)) return { ...at, kind, target: member(), nth: 1 + draw.below(60) }
      return { ...at, kind, target: member(), nth: 1 + draw.below(8), what: 'written' }
    case 'killUnsynced':
      return { ...killUnsynced(draw), atMs, target: member() }
    case 'blackout':
      return { ...at, kind }
    case 'cut':
    case 'oneWay':
    case 'clog':
    case 'reset':
    case 'forget': {
      const from = any()
      const to = pick(names)
      return from === to ? undefined : { ...at, kind, from, to }
    }
    case 'split': {
      const cut = draw.below(2 ** names.length)
      const left = names.filter((_, i) => (cut >> i) & 1)
      const right = names.filter((_, i) => !((cut >> i) & 1))
      // With a member in the middle that sees both sides.
      if (draw.chance(400_000)) right.shift()
      return { ...at, kind, left, right }
    }
    case 'ring':
      return { ...at, kind, names }
    case 'weather':
      return { ...at, kind, profile: weatherOf(draw) }
    case 'transfer':
      return { ...at, kind, target: pick(names) }
    case 'steal':
      return { ...at, kind }
    default:
      return diskOrClockFault(kind, at, field, member)
  }
}

type DiskOrClockKind = (typeof FAMILIES)[
  | 'slowDisks'
  | 'brokenDisks'
  | 'damage'
  | 'rollbacks'
  | 'membership'
  | 'clocks'
  | 'folders'][number]

function diskOrClockFault(
  kind: DiskOrClockKind,
  at: { readonly atMs: number; readonly forMs: number },
  { draw, names, clientNames, weak }: Field,
  member: () => string,
): DrawnFault {
  const pick = <T>(items: readonly T[]): T => items[draw.below(items.length)] as T
  switch (kind) {
    case 'slowDisk':
      return { ...at, kind, target: member(), syncMs: 50 + draw.below(3000) }
    case 'fullDisk':
      return { ...at, kind, target: member(), room: draw.chance(500_000) ? 0 : draw.tail(FULL_AFTER_BYTES) }
    case 'stuckDisk':
    case 'readOnlyDisk':
    case 'failSync':
    case 'failWrite':
      return { ...at, kind, target: member() }
    case 'rot':
      return { ...at, kind, target: pick(weak), file: pick(ROT) }
    case 'misdirect':
    case 'setBack':
    case 'replace':
    case 'removeFolder':
      return { ...at, kind, target: pick(weak) }
    case 'stepWall':
      return { ...at, kind, target: pick([...names, ...clientNames]), byMs: draw.below(7_200_000) - 3_600_000 }
    case 'drift': {
      const target = pick([...names, ...clientNames])
      return { ...at, kind, target, ppm: draw.below(2 * DRIFT_MAX_PPM) - DRIFT_MAX_PPM }
    }
  }
}

/** Mostly between a write and its sync, sometimes between a rename and that of the folder, which is rarer. */
function killUnsynced(draw: RandomStream): Omit<FaultOf<'killUnsynced'>, 'target'> & { readonly forMs: number } {
  const isFolder = draw.chance(350_000)
  return {
    kind: 'killUnsynced',
    forMs: UNSYNCED_FOR_MS,
    what: isFolder ? 'syncFolder' : 'written',
    nth: 1 + draw.below(isFolder ? 2 : 8),
    restartMs: 1 + draw.tail(100),
    ...(draw.chance(300_000) ? { againNth: 1 + draw.below(12) } : {}),
    powerAfterMs: 1 + draw.tail(200),
  }
}

function weatherOf(draw: RandomStream): Weather {
  const some = (max: number): number => (draw.chance(500_000) ? 0 : draw.below(max))
  return {
    lossPpm: some(300_000),
    duplicatePpm: some(500_000),
    tailUs: some(300_000),
    reorderPpm: some(500_000),
    corruptPpm: some(20_000),
  }
}
