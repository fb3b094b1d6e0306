import type { Refused } from '@leasehold/core'
import type { ConfigurationChange, ConfigurationStep, NodeId, Raft } from '@leasehold/raft'
import { type ClusterMeta, encodeMembers, type MemberInfo } from '../cluster-meta.js'
import { refused } from './proposals.js'

/** Most members of a cluster. Each additional one slows down every commit. */
const MEMBERS_MAX = 9
/** A learner that lags by at most this many entries may become a voter. */
const CAUGHT_UP_ENTRIES = 100

/** A change that an operator requests. A new member starts as a learner, and is promoted after it has caught up. */
export type MembershipChange =
  | { readonly kind: 'add'; readonly member: MemberInfo }
  | { readonly kind: 'promote'; readonly name: string }
  | { readonly kind: 'remove'; readonly name: string }
  /** Changes a member's addresses. */
  | { readonly kind: 'update'; readonly member: MemberInfo }

export type ChangeResult = { readonly kind: 'changed'; readonly index: number } | Refused

type Plan = { readonly change: ConfigurationChange } | { readonly refused: string }

/** Returns the configuration entry for a change, or why the change is refused. */
export function planChange(change: MembershipChange, meta: ClusterMeta, isCaughtUp: (node: NodeId) => boolean): Plan {
  const { configuration, members } = meta
  const name = 'member' in change ? change.member.name : change.name
  const known = members.find((member) => member.name === name)
  const plan = (step: ConfigurationStep, changed: readonly MemberInfo[] = []): Plan => ({
    change: { transition: 'auto', steps: [step], context: encodeMembers(changed) },
  })
  if (change.kind === 'add') {
    if (known && known.node !== change.member.node) return { refused: `${name} is a member already; remove it first` }
    // Adding it as a learner would take its vote.
    if (known && configuration.voters.includes(known.node)) return { refused: `${name} is a voter already` }
    if (members.length >= MEMBERS_MAX) return { refused: `there are ${members.length} members; at most ${MEMBERS_MAX}` }
    return plan({ kind: 'addLearner', node: change.member.node }, [change.member])
  }
  if (!known) return { refused: `${name} is not a member` }
  const { node } = known
  if (change.kind === 'update') {
    if (change.member.node !== node) return { refused: `${name} is node ${node}, not ${change.member.node}` }
    return plan({ kind: 'update', node }, [change.member])
  }
  if (change.kind === 'promote') {
    if (configuration.voters.includes(node)) return { refused: `${name} is a voter already` }
    if (!isCaughtUp(node)) return { refused: `${name} has not caught up yet` }
    return plan({ kind: 'addVoter', node })
  }
  if (configuration.voters.length === 1 && configuration.voters[0] === node) {
    return { refused: `${name} is the only voter; promote another one first` }
  }
  return plan({ kind: 'remove', node })
}

/** Membership changes that this member has proposed and not yet applied. */
export class PendingMembershipChanges {
  readonly #raft: Raft
  readonly #waiting = new Map<number, (result: ChangeResult) => void>()

  constructor(raft: Raft) {
    this.#raft = raft
  }

  /** Proposes a change and keeps `done` until it is applied or leadership is lost. Returns a refusal instead of proposing. */
  propose(change: MembershipChange, meta: ClusterMeta, done: (result: ChangeResult) => void): Refused | undefined {
    const plan = planChange(change, meta, (node) => this.#isCaughtUp(node))
    if ('refused' in plan) return refused('invalid', plan.refused)
    const outcome = this.#raft.proposeConfiguration(plan.change)
    if ('refused' in outcome) return refused('busy', outcome.refused, 'try again in a moment')
    this.#waiting.set(outcome.index, done)
    return undefined
  }

  /** Removes and returns the callback of the change at `index`, which has just been applied. */
  take(index: number): ((result: ChangeResult) => void) | undefined {
    const done = this.#waiting.get(index)
    this.#waiting.delete(index)
    return done
  }

  /** Removes and returns all callbacks, because leadership is lost. */
  drain(): readonly ((result: ChangeResult) => void)[] {
    const all = [...this.#waiting.values()]
    this.#waiting.clear()
    return all
  }

  /** Whether a peer has almost all entries. A voter that lags would slow down every commit. */
  #isCaughtUp(node: NodeId): boolean {
    const match = this.#raft.status.progress.get(node)?.match ?? 0
    return match > 0 && match + CAUGHT_UP_ENTRIES >= this.#raft.commit
  }
}
