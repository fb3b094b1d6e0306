import { InvalidError, type Limits } from '@leasehold/core'
import type { MemberInfo } from './cluster-meta.js'
import type { Platform } from './platform.js'

/** How an empty data folder becomes a member. */
export interface BootstrapOptions {
  /** First epoch of an empty service; default 1. Higher, when it replaces a service whose tokens must stay below. */
  readonly epoch?: number
  /**
   * The counter starts above it. Default: the floor of the wall clock, see `floorAt` of `@leasehold/core`; 0 without
   * {@link ReplicaOptions.clockFloors}. All founders of a cluster need the same one: see {@link BootstrapCluster.floor}.
   */
  readonly floor?: number
  readonly limits?: Partial<Limits>
  /**
   * The cluster that this member belongs to, as all its founders have agreed; without it the member is alone. Every
   * founder, and everybody who joins later, must be given the same list, epoch and limits.
   */
  readonly cluster?: BootstrapCluster
}

export interface BootstrapCluster {
  /** 32 hex digits, minted by one of the founders. */
  readonly id: string
  /** This member's own number, from {@link mintNode}: among the founders', or of one that joins and is no founder. */
  readonly node: number
  readonly founders: readonly MemberInfo[]
  /** The counter of the service starts above it; absent in records of older versions: 0. */
  readonly floor?: number
  /** Feature level that the service is founded with; absent in records of older versions: 1. */
  readonly level?: number
}

export interface ReplicaOptions {
  readonly platform: Platform
  /** The member's name; 1 … 64 characters. */
  readonly name: string
  /** Where it takes clients, for the others to tell. */
  readonly url?: string
  /** What to do with an empty folder; without it, an empty folder is refused. */
  readonly bootstrap?: BootstrapOptions
  /** Length of a tick; default 50 ms. */
  readonly tickMs?: number
  /** Ticks without a leader before an election; default 16, and up to twice as many by chance. */
  readonly electionTicks?: number
  /** Size of a log file; default 16 MiB. */
  readonly segmentBytes?: number
  /** Log files that are kept ready; default 2. */
  readonly spareSegments?: number
  /** Least size of the file that is kept ready for the next snapshot; default 4 MiB. */
  readonly reserveBytes?: number
  /** A snapshot is taken when the log since the last one exceeds this, or the last one's size; default 64 MiB. */
  readonly snapshotBytes?: number
  /** Most bytes of a snapshot that are made before everything else gets its turn; default 1 MiB. It is time that counts. */
  readonly snapshotSliceBytes?: number
  /** Events that are kept for watchers that come back; default 10 000, and 8 MiB. */
  readonly historyEvents?: number
  readonly historyBytes?: number
  /** Members compare the hashes of their states at every so many entries, all at the same; default 4096. */
  readonly compareEvery?: number
  /** Lets the log be written by blocking calls, the shortest way, while the disk is quick; default true. */
  readonly blockingWrites?: boolean
  /**
   * Ends the sessions that lived in the process which had the folder before, as soon as this member leads: that process is
   * known dead. Only for a service of one; default false.
   */
  readonly endLocalSessions?: boolean
  /**
   * Raises the counter to the floor of the wall clock when a service is founded and in each term of a leader, so that a state
   * that was lost does not give its tokens again; default true. False is for demonstrations whose tokens start at 1.
   */
  readonly clockFloors?: boolean
  /** Gives the folder back when everything has stopped; it calls `done`. */
  readonly release?: (done: () => void) => void
}

export type ReplicaSettings = Required<Omit<ReplicaOptions, 'bootstrap'>> & {
  readonly bootstrap: BootstrapOptions | undefined
}

type Numeric =
  | 'tickMs'
  | 'electionTicks'
  | 'segmentBytes'
  | 'spareSegments'
  | 'reserveBytes'
  | 'snapshotBytes'
  | 'snapshotSliceBytes'
  | 'historyEvents'
  | 'historyBytes'
  | 'compareEvery'

const MIB = 1024 * 1024
const SEGMENT_BYTES_MIN = 256 * 1024

/** Without the properties that are there but undefined, so that they do not hide a default. */
function definedOf(options: ReplicaOptions): ReplicaOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as unknown as ReplicaOptions
}

/** @throws InvalidError */
export function checkMemberName(name: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return
  throw new InvalidError(`not a member's name: ${JSON.stringify(name)}`, {
    hint: 'letters, digits, dots, dashes and underscores, at most 64',
  })
}

/** Fills in the defaults. @throws InvalidError */
export function settingsOf(options: ReplicaOptions): ReplicaSettings {
  const settings: ReplicaSettings = {
    url: '',
    tickMs: 50,
    electionTicks: 16,
    segmentBytes: 16 * MIB,
    spareSegments: 2,
    reserveBytes: 4 * MIB,
    snapshotBytes: 64 * MIB,
    snapshotSliceBytes: MIB,
    historyEvents: 10_000,
    historyBytes: 8 * MIB,
    compareEvery: 4096,
    blockingWrites: true,
    endLocalSessions: false,
    clockFloors: true,
    release: (done) => done(),
    ...definedOf(options),
    bootstrap: options.bootstrap,
  }
  checkMemberName(settings.name)
  const atLeast = (what: Numeric, least: number): void => {
    const value = settings[what]
    if (!Number.isSafeInteger(value) || value < least) throw new InvalidError(`${what} is ${value}; at least ${least}`)
  }
  atLeast('tickMs', 1)
  atLeast('electionTicks', 2)
  atLeast('segmentBytes', SEGMENT_BYTES_MIN)
  atLeast('spareSegments', 1)
  atLeast('reserveBytes', 0)
  atLeast('snapshotBytes', 4096)
  atLeast('snapshotSliceBytes', 1)
  atLeast('historyEvents', 0)
  atLeast('historyBytes', 0)
  atLeast('compareEvery', 1)
  return settings
}
