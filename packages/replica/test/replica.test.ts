import { type Index, type Result, StorageError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import type { AppliedBatch } from '../src/member.js'
import { Replica } from '../src/replica.js'
import { seeded } from './support/sim-disk.js'
import { acquire, World } from './support/world.js'

describe('a service of one', () => {
  it('leads soon after its start, and grants locks', () => {
    const world = new World()
    world.open()
    const session = world.openSession()
    const hold = world.acquire(session, 1, 'a')
    expect(hold).toBeGreaterThan(session)
    expect(world.replica.status).toMatchObject({
      role: 'leader',
      leader: 'n1',
      epoch: 1,
      disk: 'ok',
      failure: undefined,
    })
    expect(world.clock.now).toBeLessThan(5_050)
  })

  it('has everything that it acknowledged after a power failure, and grants greater tokens', () => {
    const world = new World()
    world.open()
    const session = world.openSession()
    const holds = Array.from({ length: 20 }, (_, i) => world.acquire(session, i + 1, `lock-${i}`))
    const before = world.read(({ state }) => state.hash())
    world.crash()
    expect(world.acquire(session, 21, 'another')).toBeGreaterThan(Math.max(...holds))
    expect(world.submit(acquire(session, 22, 'lock-3'))).toMatchObject({ kind: 'refused', code: 'busy' })
    expect(before).toBeDefined()
  })

  it('answers a burst in order, with one flush for all waiting commands', () => {
    const world = new World()
    world.open({ blockingWrites: false })
    const session = world.openSession()
    const before = world.disk.syncs
    const order: number[] = []
    for (let i = 1; i <= 500; i++)
      world.replica.submit(acquire(session, i, `l${i}`, { ack: { lowest: 1, also: [] } }), () => order.push(i))
    world.until(() => order.length === 500)
    expect(order).toEqual(Array.from({ length: 500 }, (_, i) => i + 1))
    expect(world.disk.syncs - before).toBe(1)
  })

  it('notifies listeners of an entry before its results, and at the end of a burst', () => {
    const world = new World()
    const replica = world.open()
    const session = world.openSession()
    const said: string[] = []
    const batches: AppliedBatch[] = []
    replica.onApplied((batch) => {
      batches.push(batch)
      said.push('applied')
    })
    const off = replica.onIdle(() => said.push('idle'))
    replica.submit(acquire(session, 1, 'a'), () => said.push('result'))
    world.until(() => said.includes('idle'))
    expect(said).toEqual(['applied', 'result', 'idle'])
    expect(batches[0]?.events.map((event) => event.kind)).toEqual(['held'])
    off()
    world.acquire(session, 2, 'b')
    expect(said.filter((text) => text === 'idle')).toHaveLength(1)
  })

  it('continues when a listener throws', () => {
    const world = new World()
    const replica = world.open()
    replica.onApplied(() => {
      throw new Error('not my day')
    })
    world.openSession()
    expect(replica.status.failure).toBeUndefined()
  })

  it('reads what was acknowledged before', () => {
    const world = new World()
    world.open()
    const session = world.openSession()
    let index = 0
    world.replica.submit(acquire(session, 1, 'a'), () => {
      index = world.replica.stale().index
    })
    world.until(() => index > 0)
    expect(world.read((view) => view.index)).toBeGreaterThanOrEqual(index)
  })

  it('refuses invalid and oversized commands with a code', () => {
    const world = new World()
    world.open()
    const session = world.openSession()
    expect(world.submit({ kind: 'nonsense' } as never)).toMatchObject({ kind: 'refused', code: 'invalid' })
    expect(world.submit({ kind: 'put', key: 'k', value: new Uint8Array(300_000), ifVersion: 1n })).toMatchObject({
      kind: 'refused',
    })
    expect(world.submit(acquire(session, 1, 'x'))).toMatchObject({ kind: 'granted' })
  })

  it('mints the secrets itself, and a new one each time', () => {
    const world = new World()
    world.open()
    const secret = '11'.repeat(16)
    const opened = world.submit({
      kind: 'openSession',
      nonce: 'aa'.repeat(16),
      secret,
      ttlMs: 10_000 as never,
      client: '',
      local: false,
    })
    expect(opened).toMatchObject({ kind: 'opened', secret: expect.not.stringMatching(secret) })
    const session = (opened as Extract<Result, { kind: 'opened' }>).session
    const first = world.submit(acquire(session, 1, 'a', { portable: true, secret }))
    const second = world.submit(acquire(session, 2, 'b', { persistent: true, secret }))
    const plain = world.submit(acquire(session, 3, 'c', { secret }))
    const secrets = [first, second].map((result) => (result as Extract<Result, { kind: 'granted' }>).grant.secret)
    expect(new Set([...secrets, secret]).size).toBe(3)
    expect(plain).toMatchObject({ grant: expect.not.objectContaining({ secret: expect.anything() }) })
  })

  it('keeps recent events, and reports a cursor that is too old', () => {
    const world = new World()
    const replica = world.open({ historyEvents: 5 })
    const session = world.openSession()
    const { index } = replica.stale()
    for (let i = 1; i <= 3; i++) world.acquire(session, i, `l${i}`)
    const cursor = { epoch: 1, index: index as Index, ordinal: 99 }
    expect(replica.history(cursor)?.map(({ event }) => event.kind)).toEqual(['held', 'held', 'held'])
    for (let i = 4; i <= 10; i++) world.acquire(session, i, `l${i}`)
    expect(replica.history(cursor)).toBeUndefined()
    expect(replica.history({ ...cursor, epoch: 2 })).toBeUndefined()
  })

  it('accepts an empty folder only with bootstrap options', () => {
    const world = new World()
    expect(() => world.open({ bootstrap: undefined as never })).toThrow(/is empty/)
    world.open({ bootstrap: { epoch: 7 } })
    expect(world.replica.status.epoch).toBe(7)
    world.crash(() => 0, { bootstrap: { epoch: 3 } })
    expect(world.replica.status.epoch).toBe(7)
  })

  it('survives a power failure at any moment of its bootstrap', () => {
    for (let steps = 0; steps < 16; steps++) {
      for (let seed = 0; seed < 2; seed++) {
        const world = new World(seed)
        Replica.open({ platform: world.platform, name: 'n1', bootstrap: {}, segmentBytes: 256 * 1024 }, () => {})
        for (let n = 0; n < steps; n++) if (!world.disk.runOne()) world.clock.runOne(world.clock.now + 5)
        world.crash(seeded(seed * 100 + steps))
        expect(world.openSession()).toBeGreaterThan(0)
      }
    }
  })
})

describe('sessions of the process itself', () => {
  it('end when that process is known to be dead, and no others do', () => {
    const world = new World()
    world.open({ endLocalSessions: true })
    const open = (nonce: string, local: boolean) =>
      world.submit({
        kind: 'openSession',
        nonce,
        secret: '00'.repeat(16),
        ttlMs: 60_000 as never,
        client: '',
        local,
      }) as Extract<Result, { kind: 'opened' }>
    const own = open('01'.repeat(16), true).session
    const other = open('02'.repeat(16), false).session
    world.acquire(own, 1, 'a', { lockDelayMs: 500 as never })
    world.acquire(other, 1, 'b')
    world.crash()
    expect(world.submit({ kind: 'renew', session: own })).toMatchObject({ kind: 'renewed' })
    world.crash(() => 0, { endLocalSessions: true })
    expect(world.submit({ kind: 'renew', session: own })).toMatchObject({ code: 'session-ended' })
    expect(world.submit(acquire(other, 2, 'a'))).toMatchObject({ code: 'busy' })
    world.advance(700)
    expect(world.submit(acquire(other, 3, 'a'))).toMatchObject({ kind: 'granted' })
    expect(world.submit(acquire(other, 4, 'b'))).toMatchObject({ code: 'busy' })
  })
})

describe('time', () => {
  it('ends a session when its TTL has passed, and serves the next', () => {
    const world = new World()
    world.open()
    const first = world.openSession(1430, '01'.repeat(16))
    const second = world.openSession(60_000, '02'.repeat(16))
    world.acquire(first, 1, 'a')
    const pushes: AppliedBatch['pushes'][number][] = []
    world.replica.onApplied((batch) => pushes.push(...batch.pushes))
    expect(world.submit(acquire(second, 1, 'a', { waitMs: 30_000 }))).toMatchObject({ kind: 'queued' })
    const from = world.clock.now
    world.until(() => pushes.some((push) => push.session === second && push.change?.kind === 'granted'))
    expect(world.clock.now - from).toBeGreaterThan(1400)
    expect(world.clock.now - from).toBeLessThan(1500)
  })

  it('counts a pause of the leader as two ticks', () => {
    const world = new World()
    world.open()
    const session = world.openSession(1000)
    world.acquire(session, 1, 'a')
    world.pause(20_000)
    world.advance(300)
    expect(world.submit({ kind: 'renew', session })).toMatchObject({ kind: 'renewed' })
  })

  it('continues after a restart where it stopped', () => {
    const world = new World()
    world.open()
    const session = world.openSession(5000)
    world.advance(3000)
    world.clock.now += 100_000
    world.crash()
    world.advance(1000)
    expect(world.submit({ kind: 'renew', session })).toMatchObject({ kind: 'renewed' })
    world.advance(6000)
    expect(world.submit({ kind: 'renew', session })).toMatchObject({ kind: 'refused', code: 'session-ended' })
  })

  it('stands still, and writes nothing, while nothing exists', () => {
    const world = new World()
    const replica = world.open()
    world.advance(1000)
    const index = replica.status.appliedIndex
    world.advance(60_000)
    expect(replica.status.appliedIndex).toBe(index)
  })

  it('moves at least every second while something exists', () => {
    const world = new World()
    const replica = world.open()
    world.openSession(60_000)
    const before = replica.stale().state.now
    world.advance(10_000)
    expect(replica.stale().state.now - before).toBeGreaterThanOrEqual(9_000)
    expect(replica.status.appliedIndex).toBeLessThan(20)
  })
})

describe('disk', () => {
  it('compacts the log with snapshots, and starts from them', () => {
    const world = new World()
    world.open({ snapshotBytes: 20_000 })
    const session = world.openSession(3_600_000)
    for (let i = 1; i <= 1000; i++) {
      const hold = world.acquire(session, 2 * i - 1, `lock-${i}`, { data: new Uint8Array(200) })
      expect(
        world.submit({ kind: 'release', session, request: 2 * i, ack: { lowest: 2 * i, also: [] }, hold }),
      ).toMatchObject({ kind: 'released' })
    }
    const names = world.disk.list()
    expect(names.filter((name) => name.startsWith('log-')).length).toBeLessThan(4)
    expect(names.filter((name) => name.startsWith('snapshot-')).length).toBe(2)
    const hash = world.read(({ state }) => state.hash())
    world.crash(() => 0, { snapshotBytes: 20_000 })
    expect(world.replica.stale().index).toBeGreaterThan(500)
    expect(hash).toBeDefined()
    expect(world.acquire(session, 2001, 'x')).toBeGreaterThan(0)
  })

  it('refuses grants while it is full, accepts releases, and recovers', () => {
    const world = new World()
    world.open()
    const session = world.openSession(3_600_000)
    const hold = world.acquire(session, 1, 'a')
    world.advance(500)
    world.disk.room = 0
    const statuses: string[] = []
    world.replica.onStatus((status) => statuses.push(status.disk))
    let request = 2
    let refusal: Result | undefined
    for (; request < 2000 && !refusal; request++) {
      const result = world.submit({
        kind: 'put',
        session,
        request,
        ack: { lowest: request, also: [] },
        key: 'k',
        value: new Uint8Array(30_000),
      })
      if (result.kind === 'refused') refusal = result
    }
    expect(refusal).toMatchObject({ code: 'storage', message: expect.stringContaining('full') })
    expect(statuses).toEqual(['full'])
    expect(world.submit({ kind: 'renew', session })).toMatchObject({ kind: 'renewed' })
    expect(world.submit({ kind: 'release', session, hold })).toMatchObject({ kind: 'released' })
    world.disk.room = 10_000_000
    world.advance(2500)
    expect(world.replica.status.disk).toBe('ok')
    expect(world.acquire(session, request, 'b')).toBeGreaterThan(0)
  })

  it('stops the member at a failed sync, answers all waiting commands, and loses nothing acknowledged', () => {
    for (const blockingWrites of [true, false]) {
      const world = new World()
      const replica = world.open({ blockingWrites })
      const session = world.openSession(3_600_000)
      world.acquire(session, 1, 'a')
      world.disk.failSync = 1
      const results: Result[] = []
      const answer = (result: Result) => results.push(result)
      replica.submit(acquire(session, 2, 'b'), answer)
      if (!blockingWrites) {
        world.clock.runOne(world.clock.now)
        replica.submit(acquire(session, 3, 'c'), answer)
        replica.read((view) => 'refused' in view && answer(view.refused))
      }
      world.advance(10)
      replica.submit(acquire(session, 3, 'c'), answer)
      world.advance(300)
      const waiting = blockingWrites ? [] : [{ code: 'storage' }, { code: 'storage' }]
      expect(results).toMatchObject([{ code: 'unknown-outcome' }, ...waiting, { code: 'storage' }])
      expect(replica.status).toMatchObject({
        role: 'stopped',
        failure: expect.stringMatching(/n1 .*node \d+.* term 1 .*entry \d+.*log-\d+/),
      })
      world.stop()
      world.crash()
      expect(world.submit(acquire(session, 4, 'a'))).toMatchObject({ code: 'busy' })
    }
  })

  it('with damage is not opened', () => {
    const world = new World()
    world.open()
    const session = world.openSession()
    for (let i = 1; i < 10; i++) world.acquire(session, i, `l${i}`)
    world.stop()
    const name = world.disk.list().find((file) => file.startsWith('log-')) as string
    const bytes = world.disk.bytes(name).slice()
    bytes[100] = (bytes[100] as number) ^ 1
    world.disk.overwrite(name, bytes)
    expect(() => world.open()).toThrow(StorageError)
  })

  it('stops the member once, with the reason, when it accepts no new log file', () => {
    const world = new World()
    const replica = world.open({ blockingWrites: false })
    const session = world.openSession()
    world.disk.rename = () => {
      throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' })
    }
    const failures = new Set<string>()
    replica.onStatus(({ failure }) => failure !== undefined && failures.add(failure))
    for (let i = 1; i < 200 && replica.status.role !== 'stopped'; i++) {
      world.submit({ ...acquire(session, i, `l${i}`), data: new Uint8Array(4096).fill(i) })
    }
    expect([...failures]).toEqual([expect.stringMatching(/log-.*EROFS/)])
    expect(replica.status.failure).toBe([...failures][0])
  })

  it('falls back to the previous snapshot when the newest is damaged, and logs it', () => {
    const world = new World()
    world.open({ snapshotBytes: 8192 })
    const session = world.openSession()
    const snapshots = (): string[] => world.disk.list().filter((file) => file.startsWith('snapshot-'))
    let request = 0
    for (const first = snapshots().length; snapshots().length < first + 1 || request < 400; request++) {
      world.acquire(session, request + 1, `l${request}`)
    }
    world.stop()
    const newest = snapshots().sort().at(-1) as string
    const bytes = world.disk.bytes(newest).slice()
    bytes[60] = (bytes[60] as number) ^ 1
    world.disk.overwrite(newest, bytes)
    const warnings: unknown[] = []
    const log = { ...world.platform.log, warn: (text: string, fields?: object) => warnings.push([text, fields]) }
    world.open({ platform: { ...world.platform, log } })
    expect(warnings).toEqual([
      [expect.stringContaining('damaged'), { error: expect.stringContaining(newest), hint: expect.any(String) }],
    ])
    for (const [i, held] of [0, 250, request - 1].entries()) {
      expect(world.submit(acquire(session, request + 1 + i, `l${held}`))).toMatchObject({ code: 'busy' })
    }
  })

  it('has everything acknowledged after a power failure at any moment', () => {
    for (let seed = 0; seed < 12; seed++) {
      const choose = seeded(seed)
      const world = new World(seed)
      const options = { snapshotBytes: 8192, snapshotSliceBytes: 100, blockingWrites: seed % 2 === 0 }
      world.open(options)
      const session = world.openSession(3_600_000)
      const held = new Map<string, number>()
      let request = 1
      let highest = 0
      for (let round = 0; round < 6; round++) {
        for (let n = choose(60); n > 0; n--) {
          const name = `lock-${request}`
          const own = request++
          world.replica.submit(acquire(session, own, name, { data: new Uint8Array(choose(500)) }), (result) => {
            if (result.kind === 'granted') held.set(name, result.grant.hold)
          })
          for (let steps = choose(4); steps > 0; steps--)
            if (!world.disk.runOne()) world.clock.runOne(world.clock.now + 5)
        }
        for (const hold of held.values()) highest = Math.max(highest, hold)
        world.crash(choose, options)
        for (const [name, hold] of held) {
          const result = world.submit({ kind: 'release', session, hold: hold as never })
          expect(result, `${name} of seed ${seed}`).toMatchObject({ kind: 'released' })
        }
        held.clear()
        const next = world.acquire(session, request, `lock-${request}`)
        request++
        expect(next).toBeGreaterThan(highest)
        highest = next
      }
    }
  })
})

describe('stop', () => {
  it('answers pending commands, refuses later ones, and leaves nothing behind', () => {
    const world = new World()
    const replica = world.open({ blockingWrites: false })
    const session = world.openSession()
    const results: Result[] = []
    for (let i = 1; i <= 10; i++)
      replica.submit(acquire(session, i, `l${i}`, { ack: { lowest: 1, also: [] } }), (result) => results.push(result))
    let stopped = false
    replica.stop(() => {
      stopped = true
    })
    replica.submit(acquire(session, 11, 'late'), (result) => results.push(result))
    world.until(() => stopped)
    expect(results.filter((result) => result.kind === 'granted')).toHaveLength(10)
    expect(results.filter((result) => result.kind === 'refused')).toMatchObject([{ code: 'no-quorum' }])
    expect(replica.status.role).toBe('stopped')
    world.advance(1000)
    expect(world.clock.pending).toBe(0)
    expect(world.disk.idle).toBe(true)
  })

  it('may be called twice, and after a failure', () => {
    const world = new World()
    const replica = world.open()
    world.stop()
    world.stop()
    expect(replica.status.failure).toBeUndefined()
    const other = new World()
    other.open().abandon('for a test')
    expect(other.replica.status.failure).toMatch(/for a test/)
    other.stop()
  })
})
