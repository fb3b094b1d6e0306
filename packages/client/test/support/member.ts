import type { Command } from '@leasehold/core'
import { MemoryMember, type MemberStatus } from '@leasehold/replica'
import type { TestPlatform } from './platform.js'

/** A member in memory, on the test's clock, that can be another one's follower or another service's leader. */
export class DirectMember extends MemoryMember {
  cluster = 'c1'
  role: MemberStatus['role'] = 'leader'
  leaderUrl = ''
  /** Commands that were applied, for tests that count. */
  readonly log: Command[] = []

  constructor(readonly platform: TestPlatform) {
    super({
      nowMs: () => platform.mono,
      after: (delayMs, callback) => platform.after(delayMs, callback),
      soon: (callback) => queueMicrotask(callback),
    })
  }

  override get status(): MemberStatus {
    const status = super.status
    const { cluster, leaderUrl } = this
    const role = status.role === 'stopped' ? status.role : this.role
    return { ...status, cluster, leaderUrl, role, member: 'm1', leader: 'm1' }
  }

  override beforeApply(commands: readonly Command[]): void {
    this.log.push(...commands)
  }
}
