import type { Millis, Result } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import type { Replica } from '../../src/replica.js'
import { encodeMeta } from '../../src/cluster-meta.js'
import { initializeFolder, isInitialized, openStorage, type Storage } from '../../src/storage/storage.js'
import { Cluster, type Site } from '../support/cluster.js'
import { KilledError, SimDisk } from '../support/sim-disk.js'
import { acquire } from '../support/world.js'

const lost = (): number => 0

describe('a member that was killed between a write and its sync, and then loses power', () => {
  it('acknowledges nothing that it could still lose', () => {
    const cluster = new Cluster(3, 1, { blockingWrites: false })
    const leader = cluster.elect()
    const nonce = '5a'.repeat(16)
    const facts = { nonce, secret: nonce, ttlMs: 600_000 as Millis, client: '', local: false }
    const opened = cluster.submit(leader, { kind: 'openSession', ...facts })
    const { session } = opened as Extract<Result, { kind: 'opened' }>
    const [killed, away] = cluster.sites.filter((site) => site !== leader) as [Site, Site]
    cluster.advance(1000)
    cluster.crash(away)
    cluster.stalled.add(killed)
    const results: Result[] = []
    leader.replica?.submit(acquire(session, 1, 'a'), (result) => results.push(result))
    cluster.advance(200)
    expect([results.length, killed.disk.unsynced]).toEqual([0, true])
    cluster.kill(killed)
    cluster.stalled.delete(killed)
    cluster.start(killed)
    cluster.until(() => results.length > 0)
    expect(results).toMatchObject([{ kind: 'granted' }])
    killed.disk.crash(lost)
    cluster.crash(killed)
    cluster.kill(leader)
    cluster.start(killed)
    cluster.start(away)
    expect(cluster.submit(cluster.elect(), acquire(session, 2, 'a'))).toMatchObject({ kind: 'refused', code: 'busy' })
  })

  it('does not forget a vote that it has confirmed after its restart', () => {
    const cluster = new Cluster(3, 1, { blockingWrites: false })
    const leader = cluster.elect()
    const [voter, other] = cluster.sites.filter((site) => site !== leader) as [Site, Site]
    cluster.advance(1000)
    cluster.crash(leader)
    cluster.stalled.add(voter)
    const before = status(voter).term
    cluster.until(() => status(voter).term > before)
    const { term } = status(voter)
    expect(voter.disk.unsynced).toBe(true)
    cluster.kill(voter)
    cluster.stalled.delete(voter)
    cluster.isolate(other)
    cluster.start(voter)
    expect(status(voter).term).toBe(term)
    voter.disk.crash(lost)
    cluster.crash(voter)
    cluster.start(voter)
    expect(status(voter).term).toBe(term)
  })
})

function status(site: Site): Replica['status'] {
  return (site.replica as Replica).status
}

const IDENTITY = { node: 7, name: 'n1', cluster: 'c0'.repeat(16), epoch: 1 }
const META = encodeMeta({
  cluster: IDENTITY.cluster,
  configuration: { voters: [7], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false },
  members: [{ node: 7, name: 'n1', peer: '', url: '' }],
})
const snapshot = (index: number) => ({ index, term: 1, meta: META, state: new Uint8Array(700).fill(index + 1) })

/** Runs `work` until the process is killed. Returns whether it completed before. */
function until(disk: SimDisk, work: (done: (error: Error | undefined) => void) => void): boolean {
  let ended = false
  try {
    work((error) => {
      if (error) throw error
      ended = true
    })
    disk.run()
  } catch (error) {
    if (!(error instanceof KilledError) && !/killed/.test(String(error))) throw error
    return false
  } finally {
    disk.kill()
  }
  return ended
}

function opened(disk: SimDisk): Storage {
  let storage: Storage | undefined
  const options = { segmentBytes: 8192, spareSegments: 1, reserveBytes: 2048, changed() {} }
  openStorage(disk, options, (error, result) => {
    if (error) throw error
    storage = result
  })
  disk.run()
  return storage as Storage
}

describe('a name that a killed process has left unsynced', () => {
  it('is durable once the folder is open: the identity', () => {
    let founded = 0
    for (let dieAt = 1, ended = false; !ended; dieAt++) {
      const disk = new SimDisk()
      disk.dieAt = dieAt
      ended = until(disk, (done) => initializeFolder(disk, IDENTITY, snapshot(0), done))
      if (!isInitialized(disk)) continue
      founded++
      opened(disk)
      disk.crash(lost)
      expect(isInitialized(disk)).toBe(true)
      expect(opened(disk).identity).toEqual(IDENTITY)
    }
    // Killed right before the folder was synced, and not at all.
    expect(founded).toBe(2)
  })

  it('is durable once the folder is open: a snapshot, after which the log begins', () => {
    const seen: number[] = []
    const data = new Uint8Array(10)
    for (let dieAt = 1, ended = false; !ended; dieAt++) {
      const disk = new SimDisk()
      until(disk, (done) => initializeFolder(disk, IDENTITY, snapshot(0), done))
      const { snapshots, log: first } = opened(disk)
      until(disk, (done) => first.append({ entries: [{ term: 1, index: 1, kind: 'normal', data }] }, done))
      disk.dieAt = dieAt
      ended = until(disk, (done) => snapshots.save(snapshot(9), done))
      const { log, snapshot: newest } = opened(disk)
      seen.push(newest.index)
      // What the leader sends after its snapshot.
      if (newest.index === 9) {
        const base = { index: 9, term: 1 }
        log.append({ base, entries: [{ term: 1, index: 10, kind: 'normal', data }] }, (error) => {
          if (error) throw error
        })
        disk.run()
      }
      disk.crash(lost)
      const again = opened(disk)
      expect(again.snapshot.index).toBe(newest.index)
      expect(again.log.recovered.map(({ index }) => index)).toEqual([newest.index === 9 ? 10 : 1])
    }
    expect(seen.filter((index) => index === 9).length).toBeGreaterThan(1)
  })
})
