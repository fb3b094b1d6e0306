import { type Command, type Millis, Writer } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { loopOf, type Replica } from '../../src/replica.js'
import type { DiskFile, Done } from '../../src/platform.js'
import { Cluster, type Site } from '../support/cluster.js'

/** Delays the end of every snapshot write of a member: a slow disk on which log writes continue. */
class SlowSnapshots {
  private held: (() => void)[] = []
  private slow = true

  constructor({ disk }: Site) {
    const open = disk.open.bind(disk)
    const create = disk.create.bind(disk)
    disk.open = (name) => this.wrap(name, open(name))
    disk.create = (name, size, done) => create(name, size, (error, file) => done(error, file && this.wrap(name, file)))
  }

  get writing(): boolean {
    return this.held.length > 0
  }

  release(): void {
    this.slow = false
    for (const one of this.held.splice(0)) one()
  }

  private wrap(name: string, file: DiskFile): DiskFile {
    if (!/^(snapshot|reserve)-/.test(name)) return file
    const write = (offset: number, chunks: readonly Uint8Array[], sync: boolean, done: Done): void =>
      file.write(offset, chunks, sync, (error) => {
        if (this.slow && sync) this.held.push(() => done(error))
        else done(error)
      })
    return Object.assign(Object.create(file) as DiskFile, { write })
  }
}

const opening = (i: number): Command => {
  const nonce = i.toString(16).padStart(32, '0')
  return { kind: 'openSession', nonce, secret: nonce, ttlMs: 600_000 as Millis, client: 'c'.repeat(100), local: false }
}

/** `behind` needs a snapshot from `old`, and is still writing it when `old` is partitioned and `next` leads. */
function replacedLeader(options: { seed?: number } = {}) {
  const cluster = new Cluster(3, options.seed ?? 1, { blockingWrites: false, snapshotBytes: 4096 })
  const old = cluster.elect()
  const [behind, next] = cluster.sites.filter((site) => site !== old) as [Site, Site]
  cluster.crash(behind)
  for (let i = 0; i < 200; i++) cluster.submit(old, opening(i))
  cluster.advance(3000)
  const disk = new SlowSnapshots(behind)
  cluster.start(behind)
  cluster.until(() => disk.writing, 20_000)
  const { commitIndex } = statusOf(old)
  expect(statusOf(behind).commitIndex).toBeLessThan(commitIndex)
  cluster.isolate(old)
  cluster.until(() => statusOf(next).role === 'leader', 20_000)
  return { cluster, old, behind, next, disk, commitIndex }
}

function statusOf(site: Site) {
  if (!site.replica) throw new Error(`${site.info.name} is down`)
  return site.replica.status
}

describe('a snapshot whose leader is replaced while it is written', () => {
  it('is installed once it is durable, and the two members serve requests', () => {
    const { cluster, behind, next, disk, commitIndex } = replacedLeader()
    disk.release()
    cluster.until(() => statusOf(behind).appliedIndex > commitIndex, 5000)
    expect(statusOf(next).term).toBeGreaterThan(1)
    expect(cluster.submit(next, opening(999))).toMatchObject({ kind: 'opened' })
    cluster.until(() => statusOf(behind).appliedIndex === statusOf(next).appliedIndex, 5000)
    expect(behind.replica?.stale().state.hash()).toBe(next.replica?.stale().state.hash())
  })

  it('is installed while the next leader offers one of the same index again', () => {
    const { cluster, behind, next, disk, commitIndex } = replacedLeader()
    // The next leader sends its own, which has to wait for the one that is being written.
    cluster.advance(3000)
    expect(statusOf(behind).commitIndex).toBeLessThan(commitIndex)
    disk.release()
    cluster.until(() => statusOf(behind).appliedIndex > commitIndex, 5000)
    cluster.advance(30_000)
    expect(statusOf(behind)).toMatchObject({ failure: undefined, appliedIndex: statusOf(next).appliedIndex })
  })

  it('is installed while no leader is known', () => {
    const { cluster, behind, next, disk } = replacedLeader()
    cluster.isolate(next)
    cluster.advance(5000)
    expect(statusOf(behind).leader).toBe('')
    disk.release()
    cluster.until(() => statusOf(behind).appliedIndex >= 200, 1000)
    cluster.heal()
    const leader = cluster.elect()
    expect(cluster.submit(leader, opening(999))).toMatchObject({ kind: 'opened' })
  })

  it('is loaded after a power failure right after it became durable', () => {
    const { cluster, behind, next, disk, commitIndex } = replacedLeader()
    disk.release()
    cluster.crash(behind)
    cluster.start(behind)
    cluster.until(() => statusOf(behind).appliedIndex > commitIndex, 20_000)
    cluster.until(() => statusOf(behind).appliedIndex === statusOf(next).appliedIndex, 5000)
    expect(behind.replica?.stale().state.hash()).toBe(next.replica?.stale().state.hash())
  })

  it('is received again from the next leader after a power failure before it was durable', () => {
    const { cluster, behind, commitIndex, disk } = replacedLeader()
    cluster.crash(behind)
    disk.release()
    cluster.start(behind)
    cluster.until(() => statusOf(behind).appliedIndex > commitIndex, 20_000)
  })

  it('takes the times of the entries with it that it replaces: they count for no clock any more', () => {
    const { cluster, behind, disk } = replacedLeader()
    const { timestamps } = loopOf(behind.replica as Replica)
    const writer = new Writer()
    writer.varuint(1e12)
    timestamps.note([{ kind: 'normal', term: 1, index: statusOf(behind).commitIndex + 1, data: writer.take() }])
    expect(timestamps.highest(0)).toBe(1e12)
    disk.release()
    cluster.until(() => statusOf(behind).appliedIndex >= 200, 5000)
    expect(timestamps.highest(0)).toBeLessThan(1e12)
  })

  it('does not block the next own snapshot or the next one from a leader', () => {
    const { cluster, old, behind, next, disk } = replacedLeader()
    disk.release()
    cluster.advance(5000)
    const newest = (site: Site) => site.disk.list().findLast((name) => name.startsWith('snapshot-')) as string
    const before = newest(behind)
    for (let i = 200; i < 400; i++) cluster.submit(next, opening(i))
    cluster.advance(3000)
    expect(newest(behind) > before).toBe(true)
    cluster.heal()
    cluster.until(() => statusOf(old).appliedIndex === statusOf(behind).appliedIndex, 20_000)
    expect(old.replica?.stale().state.hash()).toBe(behind.replica?.stale().state.hash())
  })
})
