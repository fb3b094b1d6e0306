import { type Command, type Index, LockState, type Millis } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import type { Raft } from '@leasehold/raft'
import { DeadSessions } from '../../src/leadership/dead-sessions.js'
import { LeaderClock } from '../../src/clock/leader-clock.js'
import { loopOf, type Replica } from '../../src/replica.js'
import { settingsOf } from '../../src/replica-options.js'
import { Peers } from '../../src/driver/peers.js'
import { Reads } from '../../src/driver/reads.js'
import { CHUNK_BYTES, SnapshotReceiver } from '../../src/snapshots/snapshot-transfer.js'
import type { Chunk } from '../../src/wire/snapshot-chunks.js'
import type { StateExporter } from '../../src/snapshots/state-exporter.js'
import { Leadership } from '../../src/leadership/leadership.js'
import { noopLogger } from '../../src/noop.js'
import { Cluster, type Site } from '../support/cluster.js'
import { SimDisk } from '../support/sim-disk.js'
import { SimClock } from '../support/world.js'

const opening = (i: number, local = false): Command => {
  const nonce = i.toString(16).padStart(32, '0')
  return { kind: 'openSession', nonce, secret: nonce, ttlMs: 60_000 as Millis, client: '', local }
}

describe('the sessions of a process that has ended', () => {
  it('are closed in the next term if this one ended early, and later sessions of this process live', () => {
    const state = LockState.create({ epoch: 1 })
    let index = 0
    const apply = (...commands: Command[]) => state.apply({ at: 1 as Millis, commands }, ++index as Index)
    apply(opening(1, true), opening(2, true), opening(3))
    const dead = new DeadSessions()
    const lost = dead.closeCommands(state)
    expect(lost).toHaveLength(2)
    apply(opening(4, true))
    expect(dead.closeCommands(state)).toEqual(lost)
    apply(lost[0] as Command)
    expect(dead.closeCommands(state)).toEqual([lost[1]])
    apply(lost[1] as Command)
    expect(dead.closeCommands(state)).toEqual([])
    expect([...state.localSessions()]).toHaveLength(1)
  })
})

describe('an entry that consensus refuses', () => {
  it('does not advance time: deadlines stay due', () => {
    const leadership = new Leadership(1, 5 as Index, new LeaderClock(1000, 0, 100), 1000)
    const at = leadership.stamp(100, 1000)
    expect(leadership.needsStamp(100, 1050, true)).toBe(true)
    leadership.proposed(6 as Index, at, [])
    expect(leadership.needsStamp(100, 1050, true)).toBe(false)
  })

  it('is not proposed in an endless loop, and succeeds later', () => {
    const cluster = new Cluster(3)
    const leader = cluster.elect()
    const raft = loopOf(leader.replica as Replica).raft as { propose: unknown }
    let offers = 0
    raft.propose = () => void offers++
    let result: unknown
    leader.replica?.submit(opening(1), (answer) => {
      result = answer
    })
    cluster.advance(1000)
    expect(offers).toBeGreaterThan(2)
    expect(offers).toBeLessThan(500)
    Reflect.deleteProperty(raft, 'propose')
    cluster.advance(1000)
    expect(result).toMatchObject({ kind: 'opened' })
  })
})

describe('a read whose leader is replaced before it has answered', () => {
  it('is repeated, and answered by the next leader', () => {
    const cluster = new Cluster(3)
    const old = cluster.elect()
    const reader = cluster.sites.find((site) => site !== old) as Site
    cluster.isolate(old)
    let answer: unknown
    reader.replica?.read((view) => {
      answer = view
    })
    cluster.until(() => cluster.leader !== old && (cluster.leader?.replica?.status.term ?? 0) > 1)
    const elected = cluster.now
    cluster.until(() => answer !== undefined)
    expect(answer).not.toHaveProperty('refused')
    expect(cluster.now - elected).toBeLessThan(500)
  })

  it('comes first in the next round', () => {
    const reads = new Reads()
    const [first, second] = [() => {}, () => {}]
    reads.add(first)
    const context = reads.begin() as number
    reads.add(second)
    expect([reads.lost(context + 1), reads.lost(context)]).toEqual([false, true])
    reads.confirm(context, 7)
    expect(reads.ready(7)).toEqual([])
    reads.confirm(reads.begin() as number, 8)
    expect(reads.ready(8)).toEqual([first, second])
  })

  it('waits no longer than the others: time counts also while no round can start', () => {
    const reads = new Reads()
    expect([reads.tick(1), reads.tick(1), reads.tick(1)]).toEqual([false, false, false])
    reads.add(() => {})
    expect(reads.tick(2)).toBe(false)
    reads.lost(reads.begin() as number)
    expect([reads.tick(2), reads.tick(2)]).toEqual([false, true])
    reads.drain()
    expect(reads.tick(0)).toBe(false)
    reads.add(() => {})
    reads.tick(9)
    reads.confirm(reads.begin() as number, 1)
    reads.add(() => {})
    expect(reads.tick(1)).toBe(false)
  })
})

describe('a snapshot transfer to a lost peer', () => {
  it('is reported as failed when its peer no longer has an address', () => {
    const outcomes: unknown[] = []
    const requests: unknown[] = []
    const platform = {
      network: { send() {}, receive() {}, setPeers() {} },
      random: { bytes: (length: number) => new Uint8Array(length), below: () => 0 },
      log: noopLogger,
      disk: new SimDisk(),
      clock: new SimClock(),
    }
    const peers = new Peers({
      settings: settingsOf({ platform, name: 'n1' }),
      identity: { node: 1, name: 'n1', cluster: 'ab'.repeat(16), epoch: 1 },
      raft: {} as Raft,
      step() {},
      ended() {},
      install() {},
      hash() {},
      level() {},
      guard: (action) => action(),
      transferred: (to, done) => outcomes.push([to, done]),
      exporter: {
        request: (request: unknown) => requests.push(request),
        cancel: () => requests.pop(),
      } as unknown as StateExporter,
    })
    const members = (peer: string) => [1, 2].map((node) => ({ node, name: `n${node}`, peer, url: '' }))
    peers.setMembers(members('host:1'))
    peers.send({ kind: 'snapshot', from: 1, to: 2, term: 1 } as never)
    peers.setMembers(members('host:2'))
    expect([requests.length, outcomes]).toEqual([1, []])
    peers.setMembers(members(''))
    expect([requests.length, outcomes]).toEqual([0, [[2, false]]])
  })

  it('frees its memory when it stalls halfway', () => {
    const receiver = new SnapshotReceiver()
    const data = new Uint8Array(CHUNK_BYTES)
    const chunk: Chunk = {
      ...{ transfer: 7, leaderTerm: 3, index: 9, term: 3, metaBytes: 0, checksum: 0 },
      ...{ total: 3 * CHUNK_BYTES, offset: 0, data },
    }
    expect(receiver.bufferedChunks).toBe(0)
    expect(receiver.receive(2, chunk, false).ack).toMatchObject({ offset: CHUNK_BYTES })
    for (let i = 0; i < 99; i++) receiver.tick()
    expect(receiver.bufferedChunks).toBe(1)
    // Every chunk counts, also one that is there already.
    receiver.receive(2, chunk, false)
    for (let i = 0; i < 99; i++) receiver.tick()
    expect(receiver.bufferedChunks).toBe(1)
    receiver.tick()
    expect(receiver.bufferedChunks).toBe(0)
    // A late chunk of a dropped transfer is ignored.
    expect(receiver.receive(2, { ...chunk, offset: CHUNK_BYTES }, false).ack).toBeUndefined()
    expect(receiver.receive(2, chunk, false).ack).toMatchObject({ offset: CHUNK_BYTES })
  })
})
