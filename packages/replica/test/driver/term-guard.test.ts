import { message } from '@leasehold/raft'
import { describe, expect, it } from 'vitest'
import { TERM_STEP_MAX, TermGuard } from '../../src/driver/term-guard.js'
import { writeMessage } from '../../src/wire/consensus-messages.js'
import { PeerFrames } from '../../src/wire/peer-frames.js'
import { Cluster, type Site } from '../support/cluster.js'

const HUGE = 2 ** 40
const vote = (from: number, to: number, term: number) =>
  message({ kind: 'vote', from, to, term, index: 0, logTerm: 0, context: 0 } as never)

/** Sends a frame to a member as if another one had sent it. */
function inject(cluster: Cluster, from: Site, to: Site, term: number): void {
  const frames = new PeerFrames('c0'.repeat(16), from.info.node)
  const sent = vote(from.info.node, to.info.node, term)
  const frame = frames.encode('consensus', to.info.node, (writer) => writeMessage(writer, sent))
  to.handler?.(from.info.node, frame)
  cluster.advance(100)
}

const termsOf = (cluster: Cluster) => cluster.sites.map(({ replica }) => replica?.status.term)

describe('TermGuard', () => {
  it('admits terms up to a bound above the own term', () => {
    const guard = new TermGuard()
    guard.setMembers([1, 2, 3])
    expect(guard.problemOf(vote(2, 1, 5 + TERM_STEP_MAX), 5)).toBeUndefined()
    expect(guard.problemOf(vote(2, 1, 6 + TERM_STEP_MAX), 5)).toContain('1 of 3 members report it')
  })

  it('admits a higher term once a majority of the members has reported it', () => {
    const guard = new TermGuard()
    guard.setMembers([1, 2, 3])
    expect(guard.problemOf(vote(2, 1, HUGE), 5)).toBeDefined()
    expect(guard.problemOf(vote(2, 1, HUGE + 1), 5)).toBeDefined()
    // A node that is no member counts for nothing.
    expect(guard.problemOf(vote(9, 1, HUGE), 5)).toBeDefined()
    expect(guard.problemOf(vote(3, 1, HUGE + 2), 5)).toBeUndefined()
  })

  it('admits every term before this member knows the others', () => {
    expect(new TermGuard().problemOf(vote(2, 1, HUGE), 0)).toBeUndefined()
  })

  it('rejects forwarded proposals', () => {
    const proposal = message({ kind: 'propose', from: 2, to: 1, term: 0, entries: [] } as never)
    expect(new TermGuard().problemOf(proposal, 5)).toContain('forwarded proposal')
  })
})

describe('a member that sends a huge term', () => {
  it('does not stop the cluster, and nothing of it is durable', () => {
    const cluster = new Cluster(3)
    const leader = cluster.elect()
    const [attacker, other] = cluster.sites.filter((site) => site !== leader) as [Site, Site]
    const before = termsOf(cluster)
    inject(cluster, attacker, leader, HUGE)
    inject(cluster, attacker, other, HUGE)
    expect(termsOf(cluster)).toEqual(before)
    cluster.crash(other)
    cluster.start(other)
    cluster.elect()
    expect(Math.max(...(termsOf(cluster) as number[]))).toBeLessThan(100)
  })

  it('cannot leave the range of exact numbers: such a frame is malformed', () => {
    const cluster = new Cluster(1)
    const [site] = cluster.sites as [Site]
    cluster.elect()
    inject(cluster, { ...site, info: { ...site.info, node: 7 } }, site, 2 ** 52 + 1)
    expect(site.replica?.status).toMatchObject({ role: 'leader', term: 1 })
  })
})
