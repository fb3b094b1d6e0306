import { InvalidError, type Limits } from '@leasehold/core'
import type { MemberInfo } from './cluster-meta.js'
import type { Platform } from './platform.js'

/** How an empty data folder is bootstrapped. */
export interface BootstrapOptions {
  /** First epoch of the service; default 1. Use a higher one to replace a service whose tokens must stay lower. */
  readonly epoch?: number
  /**
   * The token counter starts above this floor. Default: the floor of the wall clock, see `floorAt` of `@leasehold/core`; 0 without
   * {@link ReplicaOptions.clockFloors}. All founders of a cluster need the same one: see {@link BootstrapCluster.floor}.
   */
  readonly floor?: number
  readonly limits?: Partial<Limits>
  /**
   * The cluster that this member belongs to, as its founders agreed; without it, the member is the only one. Every founder,
   * and every member that joins later, must get the same list, epoch and limits.
   */
  readonly cluster?: BootstrapCluster
}

export interface BootstrapCluster {
  /** 32 hex digits, minted by one of the founders. */
  readonly id: string
  /** This member's own number, from {@link mintNode}: one of the founders', or that of a member that joins later. */
  readonly node: number
  readonly founders: readonly MemberInfo[]
  /** The token counter starts above this floor; 0 when absent, as in records of older versions. */
  readonly floor?: number
  /** Feature level of the new service; 1 when absent, as in records of older versions. */
  readonly level?: number
}

export interface ReplicaOptions {
  readonly platform: Platform
  /** The member's name; 1 … 64 characters. */
  readonly name: string
  /** URL for clients, which the other members report. */
  readonly url?: string
  /** How to bootstrap an empty folder; without it, an empty folder is refused. */
  readonly bootstrap?: BootstrapOptions
  /** Length of a tick; default 50 ms. */
  readonly tickMs?: number
  /** Least number of ticks without a leader before an election; default 16. The actual number is random, up to twice that. */
  readonly electionTicks?: number
  /** Size of a log file; default 16 MiB. */
  readonly segmentBytes?: number
  /** Preallocated log files kept in reserve; default 2. */
  readonly spareSegments?: number
  /** Least size of the preallocated file for the next snapshot; default 4 MiB. */
  readonly reserveBytes?: number
  /** Log bytes since the last snapshot that trigger the next one, unless that snapshot is larger; default 64 MiB. */
  readonly snapshotBytes?: number
  /** Most bytes of a snapshot to encode per slice; default 1 MiB. The time limit of a slice usually comes first. */
  readonly snapshotSliceBytes?: number
  /** Recent events to keep for watchers that reconnect; default 10 000 events and 8 MiB. */
  readonly historyEvents?: number
  readonly historyBytes?: number
  /** Members compare state hashes at every multiple of this index; default 4096. */
  readonly compareEvery?: number
  /** Allows blocking log writes, the shortest path, while the disk is fast; default true. */
  readonly blockingWrites?: boolean
  /**
   * Ends the sessions of the process that owned the folder before, as soon as this member leads: that process is known to be
   * dead. Only for a service with a single member; default false.
   */
  readonly endLocalSessions?: boolean
  /**
   * Raises the token counter to the floor of the wall clock at bootstrap and in each term, so that a service that lost its
   * state does not grant the same tokens again; default true. False is for demonstrations with tokens from 1.
   */
  readonly clockFloors?: boolean
  /** Releases the folder after everything has stopped, then calls `done`. */
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

/** Drops properties that are set to undefined, so that they do not hide a default. */
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
