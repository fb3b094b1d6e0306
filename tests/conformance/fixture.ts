import type { Capabilities } from '@leasehold/client'
import type { Locks, LocksOptions } from 'leasehold'
import type { ServiceName } from '../services/suite.js'

/** One engine under the suite. */
export interface Fixture {
  /** As the table in docs/engines.md calls it. */
  readonly name: string
  /** What has to be installed for it. */
  readonly needs?: ServiceName
  readonly capabilities: Capabilities
  /** The shortest TTL that this engine keeps as it is; shorter ones last this long at the engine. */
  readonly shortestTtlMs: number
  /** How much later than the TTL a dead session ends at the latest, beside a slow machine. */
  readonly expirySlackMs: number
  /** Whether `start` gives a line that tests can break. */
  readonly line?: boolean
  start(): Promise<RunningEngine>
}

/** A started engine. */
export interface RunningEngine {
  /** A client of its own connection. */
  client(options?: LocksOptions): Locks
  /** What a test may do to the line between some clients and the engine; undefined: nothing lies between them. */
  readonly line?: FaultyLine
  stop(): Promise<void>
}

export interface FaultyLine {
  /** A client behind the line. */
  client(options?: LocksOptions): Locks
  /** Answers no longer come back, while requests still arrive. */
  mute(): void
  /** Connections break and are refused. */
  shut(): void
  /** All is well again. */
  open(): void
}
