import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'libsql'
import {
  AcquireTimeoutError,
  BusyError,
  connect,
  HoldLostError,
  InvalidError,
  StaleTokenError,
  UnavailableError,
} from 'leasehold'
import { guardSql } from '@leasehold/fence/migrations'
import { fence } from '@leasehold/fence/sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Cli, until } from '../../packages/cli/test/support/cli.js'
import { freePort } from '../services/ports.js'

/** A tick of the leader, twice; and what a busy machine may add to every upper bound in these tests. */
const TWO_TICKS_MS = 200
const SLACK_MS = 3000

/** The promises of the service, each against a real server process on a real disk. */
describe('the promises, on one machine', () => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-promises-'))
  let server: Cli
  let url = ''
  let listen = ''

  const start = async (): Promise<void> => {
    if (listen === '') listen = `127.0.0.1:${await freePort()}`
    server = new Cli(['serve', '--data', join(folder, 'data'), '--listen', listen, '--json', '--log-level', 'silent'])
    await server.printed('"url"')
    url = (JSON.parse(server.stdout) as { url: string }).url
  }
  const kill = async (): Promise<void> => {
    server.kill('SIGKILL')
    await server.finished
  }
  const client = (options = {}) => connect(url, { clientName: 'promises', ...options })
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const answer = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await answer.json()) as Record<string, string>
  }

  beforeAll(start)
  afterAll(async () => {
    await kill()
    rmSync(folder, { recursive: true, force: true })
  })

  it('1. exclusion in the log: no hold, or one exclusive, or shared ones, or at most n permits', async () => {
    const locks = await client()
    const from = (await locks.query({})).at
    const modes = [{}, { mode: 'shared' as const }]
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const hold =
          i % 5 === 4 ? await locks.acquire('p1/gpu', { permits: 3 }) : await locks.acquire('p1/x', modes[i % 2] ?? {})
        await sleep(i % 7)
        await hold.release()
      }),
    )
    const live = new Map<bigint, string>()
    let seen = 0
    const controller = new AbortController()
    for await (const event of locks.watch({ prefix: 'p1', from, signal: controller.signal })) {
      if (event.kind === 'held') {
        const [lock] = event.locks
        live.set(event.id, typeof lock?.mode === 'object' ? `permit ${lock.slot}` : `${lock?.mode}`)
        const all = [...live.values()]
        const permits = all.filter((mode) => mode.startsWith('permit'))
        expect(new Set(permits).size).toBe(permits.length)
        expect(permits.length).toBeLessThanOrEqual(3)
        if (all.includes('exclusive')) expect(all.filter((mode) => !mode.startsWith('permit'))).toEqual(['exclusive'])
      }
      if (event.kind === 'freed') {
        live.delete(event.id)
        if (++seen === 60) controller.abort()
      }
    }
    expect(live.size).toBe(0)
    await locks.close()
  })

  it('2. ordered tokens: every later exclusive grant is greater, over kill -9, and overlapping readers share one', async () => {
    let locks = await client()
    let last = 0n
    const take = async (): Promise<void> => {
      const hold = await locks.acquire('p2')
      expect(hold.token).toBeGreaterThan(last)
      last = hold.token
      await hold.release()
    }
    for (let i = 0; i < 10; i++) await take()
    const [a, b] = [await locks.acquire('p2', { mode: 'shared' }), await locks.acquire('p2', { mode: 'shared' })]
    expect(a.tokenOf('p2')).toBe(b.tokenOf('p2'))
    expect(a.tokenOf('p2')).toBeGreaterThan(last)
    last = a.tokenOf('p2')
    await a.release()
    await b.release()
    await locks.close()
    for (let i = 0; i < 3; i++) {
      await kill()
      await start()
      locks = await client()
      await take()
      await locks.close()
    }
  })

  it('3. no stale effect: a guard that has seen a later token refuses the earlier one, and loses no update', async () => {
    const db = new Database(join(folder, 'resource.db'))
    db.exec(guardSql('sqlite'))
    db.exec('CREATE TABLE account (id INTEGER PRIMARY KEY, total INTEGER); INSERT INTO account VALUES (1, 100)')
    const locks = await client()
    const guard = fence(db)
    const read = (): number => (db.prepare('SELECT total FROM account').get() as { total: number }).total
    const first = await locks.acquire('p3')
    const unit = await guard.with(first, () => read())
    // A process that was paused keeps its tokens and does not know: it has the lock as far as it can tell.
    const paused = {
      names: first.names,
      mode: first.mode,
      tokenOf: (name: string) => first.tokenOf(name),
      assertHeld() {},
    }
    await locks.steal('p3', { reason: 'the holder seems to be gone' })
    const second = await locks.acquire('p3')
    const other = await guard.with(second, () => read())
    await expect(guard.with(paused, () => db.prepare('UPDATE account SET total = ?').run(unit + 1))).rejects.toThrow(
      StaleTokenError,
    )
    await guard.with(second, () => db.prepare('UPDATE account SET total = ?').run(other + 10))
    expect(read()).toBe(110)
    await second.release()
    await locks.close()
    db.close()
  })

  it('5. lower and upper bound: a dead session lives for its TTL, and not much longer', async () => {
    const ttl = 1500
    const locks = await client()
    const asked = performance.now()
    await post('/v1/acquire', { name: 'p5', ttl: `${ttl}ms` })
    const answered = performance.now()
    const hold = await locks.acquire('p5')
    const waited = performance.now()
    expect(waited - asked).toBeGreaterThanOrEqual(ttl)
    expect(waited - answered).toBeLessThan(1.05 * ttl + TWO_TICKS_MS + SLACK_MS)
    await hold.release()
    await locks.close()
  })

  it('6. local deadline: a client that hears nothing gives its hold up before the service can grant it again', async () => {
    const ttl = 2000
    /** What the client takes off for the difference of two clocks. */
    const margin = ttl / 10
    const locks = await client({ ttl: `${ttl}ms` })
    const hold = await locks.acquire('p6')
    server.kill('SIGSTOP')
    const stopped = performance.now()
    // By the clock of the client: its timer may be late on a busy machine, its answers are not.
    expect(hold.remaining()).toBeLessThanOrEqual(ttl - margin)
    const lost = await hold.lost
    const elapsed = performance.now() - stopped
    server.kill('SIGCONT')
    expect(lost).toBeInstanceOf(HoldLostError)
    expect(lost?.reason).toBe('deadline')
    expect(elapsed).toBeLessThan(ttl - margin + SLACK_MS)
    expect(hold.state).toBe('lost')
    expect(() => hold.assertHeld()).toThrow(HoldLostError)
    expect(await hold.release()).toEqual({ released: false })
    await locks.close()
  })

  it('7. exactly once: a repeated request gets the first answer, and has no second effect', async () => {
    const { session } = await post('/v1/sessions', { ttl: '10s' })
    const body = { session, request: 1, name: 'p7', ttl: '10s' }
    const first = await post('/v1/acquire', body)
    const again = await post('/v1/acquire', body)
    expect(again.id).toBe(first.id)
    expect(again.token).toBe(first.token)
    const locks = await client()
    expect((await locks.query({ name: 'p7' })).held.length).toBe(1)
    await locks.close()
  })

  it('8. durable: what was acknowledged is there after kill -9', async () => {
    const locks = await client()
    const register = locks.register('p8/register')
    const hold = await locks.acquire('p8/lock', { ttl: '30s' })
    const { version } = await register.put('kept', { ifVersion: 0n })
    await kill()
    await start()
    const other = await client()
    const { held } = await other.query({ name: 'p8/lock' })
    expect(held.map((row) => row.id)).toEqual([hold.id])
    expect((await other.register('p8/register').get())?.version).toBe(version)
    await until(async () => hold.state === 'held' && (await hold.release()).released, 'the holder is back and releases')
    await other.close()
    await locks.close()
  })

  it('9. fair: waiters are served first come, first served, across modes', async () => {
    const locks = await client()
    const first = await locks.acquire('p9')
    const order: number[] = []
    const waiting: Promise<void>[] = []
    for (let i = 0; i < 12; i++) {
      const mode = i % 3 === 2 ? 'shared' : 'exclusive'
      waiting.push(
        locks.acquire('p9', { mode }).then(async (hold) => {
          order.push(i)
          await hold.release()
        }),
      )
      await until(async () => (await locks.query({ name: 'p9' })).pending.length === i + 1, `waiter ${i} is queued`)
    }
    await first.release()
    await Promise.all(waiting)
    expect(order).toEqual([...order].sort((a, b) => a - b))
    await locks.close()
  })

  it('10. fresh reads: what one client has written, every other reads', async () => {
    const [writer, reader] = [await client(), await client()]
    for (let i = 0; i < 20; i++) {
      const { version } = await writer.register('p10').put(i)
      const seen = await reader.register('p10').get()
      expect(seen?.version).toBeGreaterThanOrEqual(version)
    }
    await writer.close()
    await reader.close()
  })

  it('11. watches: no gap, no repeat, no going back, also when taken up again from a cursor', async () => {
    const locks = await client()
    const from = (await locks.query({})).at
    const versions: bigint[] = []
    for (let i = 0; i < 30; i++) versions.push((await locks.register('p11').put(i)).version)
    const collect = async (cursor: string, count: number) => {
      const controller = new AbortController()
      const got: { cursor: string; version: bigint }[] = []
      for await (const event of locks.watch({ prefix: 'p11', from: cursor, signal: controller.signal })) {
        if (event.kind === 'put') got.push({ cursor: event.cursor, version: event.version })
        if (got.length === count) controller.abort()
      }
      return got
    }
    const all = await collect(from, 30)
    expect(all.map((one) => one.version)).toEqual(versions)
    const rest = await collect((all[9] as { cursor: string }).cursor, 20)
    expect(rest.map((one) => one.version)).toEqual(versions.slice(10))
    await locks.close()
  })

  it('12. nothing is lost in silence: one typed error each, and never the wrong one', async () => {
    const locks = await client()
    const hold = await locks.acquire('p12')
    await expect(locks.acquire('p12', { wait: 0 })).rejects.toThrow(BusyError)
    await expect(locks.acquire('p12', { wait: '50ms' })).rejects.toThrow(AcquireTimeoutError)
    await expect(locks.acquire('p12', { permits: 2 })).rejects.toThrow(InvalidError)
    await expect(locks.acquire('bad\u0000name')).rejects.toThrow(InvalidError)
    await kill()
    await expect(locks.acquire('p12/other', { wait: '300ms' })).rejects.toThrow(UnavailableError)
    await start()
    await hold.release()
    await locks.close()
  })
})
