import type { GuardableHold } from '@leasehold/fence'
import type { Process, World } from '../world/index.js'
import type { Cluster, SimulatedMember } from '../cluster/index.js'
import type { Rule, Step } from './format.js'
import type { SystemActions } from './scenario-fault.js'

/** A lock system in the world, as scenarios use it: the production service, or a baseline. */
export interface LockSystem {
  /** Names of its machines, in the order of their lanes. */
  readonly members: readonly string[]
  /** Its holds say of themselves that they are approximate. */
  readonly approximate?: boolean
  /** Two valid holds at once are a violation: the system has nothing else that protects. */
  readonly overlapViolates: boolean
  /** A client in this process. Called once for each client, in its first turn. */
  client(process: Process): LockClient
  /** The machine that is meant by a name such as `leader`. */
  resolve?(who: string): string
  /** Starts a machine's process again. */
  start?(member: string): void
  /** The production member on a machine, if there is one. */
  member?(name: string): SimulatedMember | undefined
  /** Faults of its own, by `action`. */
  readonly actions?: SystemActions
  /** Whether the token is the one of the present holder, for resources that ask. */
  verify?(process: Process, header: string): Promise<boolean>
  /** What its own checkers have found. */
  violations?(): readonly { readonly rule: Rule; readonly text: string; readonly atUs: number }[]
  /** What else there is to observe at the end; `startUs` is second 0. */
  facts?(startUs: number): Readonly<Record<string, unknown>>
  /** The production members, for pictures. */
  readonly cluster?: Cluster
  /** What a machine of a baseline has in store for a lock, for pictures: whose it is, and for how long by its clock. */
  look?(member: string, lock: string): { readonly owner: string; readonly remainingMs: number | undefined } | undefined
  /** From now on messages of a kind, such as `renew`, get lost between the client and its connection; or no more. */
  loses?(client: string, message: string, lost: boolean): void
  /** Lets it become ready before second 0 of the scenario. */
  ready?(): boolean
}

export interface LockClient {
  /** Resolves with a hold, or with undefined when the lock was not to be had. */
  acquire(lock: string, options: Readonly<Record<string, unknown>>): Promise<HeldBy | undefined>
  /** Steps of its own, by `action`. */
  readonly actions?: Readonly<Record<string, (step: Step & { readonly do: 'client' }) => Promise<void>>>
}

/** A hold, as its client sees it. */
export interface HeldBy {
  readonly token: bigint | undefined
  /** What a guard takes; undefined when there is no token. */
  readonly guardable: GuardableHold | undefined
  /** By the algorithm's own rule and the client's own clocks, at this moment. Without side effects. */
  isValid(): boolean
  /** How long it stays valid if nothing happens, by the same rule. Without side effects. */
  remainingMs?(): number
  release(): Promise<void>
}

/** Builds a system. @throws Error on wrong options */
export type SystemFactory = (world: World, spec: Readonly<Record<string, unknown>>) => LockSystem
