import { InvalidError, type Refused } from '@leasehold/core'
import type { ChangeResult, MemberProgress, MembershipChange } from '@leasehold/replica'
import { fetchBootstrapStatus } from './bootstrap-status.js'
import { type Dialer, plainDialer } from './dialer.js'

/** The part of a replica that changes its cluster. */
export interface ClusterMember {
  readonly members: readonly MemberProgress[]
  changeMembership(change: MembershipChange, done: (result: ChangeResult) => void): void
  transferLeadership(name: string): void
}

const CHANGE_TIMEOUT_MS = 10_000

/** Changes the membership and the leadership of a cluster, on its leader. */
export class ClusterAdmin {
  readonly #member: ClusterMember
  readonly #dialer: Dialer

  constructor(member: ClusterMember, dialer: Dialer = plainDialer) {
    this.#member = member
    this.#dialer = dialer
  }

  get members(): readonly MemberProgress[] {
    return this.#member.members
  }

  /** Adds the empty member that listens at `peer` as a learner. @throws InvalidError, UnavailableError */
  async add(name: string, peer: string): Promise<ChangeResult> {
    const status = await fetchBootstrapStatus(this.#dialer, peer)
    if (status.name !== name) throw new InvalidError(`the member at ${peer} is called ${status.name}, not ${name}`)
    return await this.#change({ kind: 'add', member: { node: status.node, name, peer, url: status.url } })
  }

  promote(name: string): Promise<ChangeResult> {
    return this.#change({ kind: 'promote', name })
  }

  remove(name: string): Promise<ChangeResult> {
    return this.#change({ kind: 'remove', name })
  }

  transfer(name: string): void {
    this.#member.transferLeadership(name)
  }

  #change(change: MembershipChange): Promise<ChangeResult> {
    return new Promise((resolve) => {
      const unknown: Refused = {
        kind: 'refused',
        code: 'unknown-outcome',
        message: `the change has no outcome after ${CHANGE_TIMEOUT_MS} ms`,
        hint: 'check: leasehold cluster status',
      }
      const timer = setTimeout(() => resolve(unknown), CHANGE_TIMEOUT_MS)
      this.#member.changeMembership(change, (result) => {
        clearTimeout(timer)
        resolve(result)
      })
    })
  }
}
