import { InvalidError, type Refused } from '@leasehold/core'
import type { ChangeResult, MemberProgress, MembershipChange } from '@leasehold/replica'
import { type Dialer, plainDialer } from './dialer.js'
import { fetchBootstrapStatus } from './bootstrap-status.js'

/** The part of a replica that an operator changes a cluster by. */
export interface ClusterMember {
  readonly members: readonly MemberProgress[]
  changeMembership(change: MembershipChange, done: (result: ChangeResult) => void): void
  transferLeadership(name: string): void
}

const CHANGE_TIMEOUT_MS = 10_000

/** Operators' changes of the cluster, on the leader. */
export class ClusterAdmin {
  constructor(
    private readonly member: ClusterMember,
    private readonly dialer: Dialer = plainDialer,
  ) {}

  get members(): readonly MemberProgress[] {
    return this.member.members
  }

  /** Adds the empty member that listens at `peer` as a learner. @throws InvalidError, UnavailableError, or a refusal */
  async add(name: string, peer: string): Promise<ChangeResult> {
    const standing = await fetchBootstrapStatus(this.dialer, peer)
    if (standing.name !== name) throw new InvalidError(`the member at ${peer} is called ${standing.name}, not ${name}`)
    return await this.change({ kind: 'add', member: { node: standing.node, name, peer, url: standing.url } })
  }

  promote(name: string): Promise<ChangeResult> {
    return this.change({ kind: 'promote', name })
  }

  remove(name: string): Promise<ChangeResult> {
    return this.change({ kind: 'remove', name })
  }

  transfer(name: string): void {
    this.member.transferLeadership(name)
  }

  private change(change: MembershipChange): Promise<ChangeResult> {
    return new Promise((resolve) => {
      const unknown: Refused = {
        kind: 'refused',
        code: 'unknown-outcome',
        message: `the change has no outcome after ${CHANGE_TIMEOUT_MS} ms`,
        hint: 'look at: leasehold cluster status',
      }
      const timer = setTimeout(() => resolve(unknown), CHANGE_TIMEOUT_MS)
      this.member.changeMembership(change, (result) => {
        clearTimeout(timer)
        resolve(result)
      })
    })
  }
}
