import {
  HoldLostError,
  InvalidError,
  StaleTokenError,
  TOKEN_MAX,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { startPostgres } from '../../../tests/services/postgres.js'
import type { Service } from '../../../tests/services/process.js'
import { describeWith } from '../../../tests/services/suite.js'
import { guardSql } from '../src/migrations.js'
import { fence, fencedUpdate, MissingRowError } from '../src/pg.js'
import { holdOf, holdOfLocks } from './support/holds.js'
import { proxyTo } from './support/proxy.js'

const R = 'billing/invoice-42'
const WAITING = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

describeWith('PostgreSQL', 'the guard of PostgreSQL', () => {
  let server: Service
  let pool: pg.Pool

  beforeAll(async () => {
    server = await startPostgres()
    pool = new pg.Pool({ connectionString: server.url, max: 20 })
    await pool.query(guardSql('pg'))
    await pool.query(guardSql('pg'))
    await pool.query('CREATE TABLE invoice (id text PRIMARY KEY, total bigint NOT NULL)')
    await pool.query(guardSql('pg', { form: 'column', on: 'invoice' }))
    await pool.query(guardSql('pg', { form: 'column', on: 'invoice' }))
    await pool.query('CREATE TABLE fenced (id text PRIMARY KEY, total bigint NOT NULL)')
    await pool.query(guardSql('pg', { form: 'trigger', on: 'fenced', resource: 'billing/{id}' }))
    await pool.query(guardSql('pg', { form: 'trigger', on: 'public.fenced', resource: 'billing/{id}' }))
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })
  beforeEach(async () => {
    await pool.query('TRUNCATE leasehold_guard, invoice')
    await pool.query('UPDATE leasehold_guard_floor SET token = 0')
    await pool.query("INSERT INTO invoice (id, total) VALUES ('invoice-42', 5)")
    await pool.query(
      "SET session_replication_role = replica; TRUNCATE fenced; INSERT INTO fenced VALUES ('invoice-42', 5); RESET session_replication_role",
    )
  })

  const total = async (table = 'invoice') =>
    Number((await pool.query(`SELECT total FROM ${table} WHERE id = 'invoice-42'`)).rows[0].total)
  const markOf = async (resource = R) => {
    const { rows } = await pool.query('SELECT token::text AS token FROM leasehold_guard WHERE resource = $1', [
      resource,
    ])
    return rows[0] === undefined ? undefined : BigInt(rows[0].token)
  }
  const set = (value: number) => (tx: { query: pg.Pool['query'] }) => tx.query('UPDATE invoice SET total = $1', [value])
  const guard = () => fence(pool)

  it('accepts a token at or above the mark, and stores the mark with the effect', async () => {
    await guard().with(holdOf(33n), set(6))
    await guard().with(holdOf(33n), set(7))
    await guard().with(holdOf(34n), set(8))
    expect(await markOf()).toBe(34n)
    expect(await total()).toBe(8)
  })

  it('rejects a token below the mark, and writes nothing', async () => {
    await guard().with(holdOf(34n), set(6))
    const error = await guard()
      .with(holdOf(33n), set(7))
      .catch((e: unknown) => e)
    expect(error).toBeInstanceOf(StaleTokenError)
    expect(error).toMatchObject({ resource: R, token: 33n, mark: 34n })
    expect(await total()).toBe(6)
  })

  it('raises the mark when it is opened for reading, so a stale write before the first write is rejected', async () => {
    const seen = await guard().with(holdOf(34n), (tx) => tx.query('SELECT total FROM invoice'))
    expect(Number(seen.rows[0].total)).toBe(5)
    await expect(guard().with(holdOf(33n), set(6))).rejects.toThrow(StaleTokenError)
    await guard().open(holdOf(35n))
    await expect(guard().with(holdOf(34n), set(6))).rejects.toThrow(StaleTokenError)
    expect(await total()).toBe(5)
  })

  it('compares all 63 bits', async () => {
    await guard().open(holdOf(TOKEN_MAX))
    await expect(guard().open(holdOf(TOKEN_MAX - 1n))).rejects.toMatchObject({ mark: TOKEN_MAX, token: TOKEN_MAX - 1n })
    await guard().open(holdOf(9_007_199_254_740_993n, 'other'))
    await expect(guard().open(holdOf(9_007_199_254_740_992n, 'other'))).rejects.toThrow(StaleTokenError)
  })

  it('rolls the mark back with the transaction', async () => {
    await guard().open(holdOf(33n))
    const boom = new Error('boom')
    await expect(
      guard().with(holdOf(34n), async (tx) => {
        await set(9)(tx)
        throw boom
      }),
    ).rejects.toBe(boom)
    expect(await markOf()).toBe(33n)
    expect(await total()).toBe(5)
    await guard().with(holdOf(33n), set(6))
    expect(await total()).toBe(6)
  })

  it('lets the higher token win when two first openings race', async () => {
    for (let round = 0; round < 20; round++) {
      const name = `first/${round}`
      const tokens = [33n, 34n, 35n, 36n].sort(() => Math.random() - 0.5)
      const results = await Promise.allSettled(tokens.map((token) => guard().open(holdOf(token, name))))
      for (const result of results)
        if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(StaleTokenError)
      expect(results[tokens.indexOf(36n)]?.status).toBe('fulfilled')
      expect(await markOf(name)).toBe(36n)
    }
  })

  it('checks the hold before the transaction begins and before it commits', async () => {
    const hold = holdOf(33n)
    await guard().with(hold, set(6))
    expect(hold.checks).toBe(3)
    await expect(
      guard().with(hold, async (tx) => {
        await set(7)(tx)
        hold.lose()
      }),
    ).rejects.toThrow(HoldLostError)
    expect(await total()).toBe(6)
    let ran = false
    const late = guard().with(hold, () => {
      ran = true
    })
    await expect(late).rejects.toThrow(HoldLostError)
    expect(ran).toBe(false)
  })

  it('delays the release of a hold until its effects have ended', async () => {
    const tracked: Promise<unknown>[] = []
    const hold = {
      ...holdOf(33n),
      [Symbol.for('leasehold.hold')]: { track: (effect: Promise<unknown>) => tracked.push(effect) },
    }
    let settled = false
    const effect = guard().with(hold, (tx) => tx.query('SELECT pg_sleep(0.05)'))
    expect(tracked).toHaveLength(1)
    void tracked[0]?.then(() => {
      settled = true
    })
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(settled).toBe(false)
    await effect
    await tracked[0]
  })

  it('lets shared holds with one token read and never write', async () => {
    const shared = holdOf(40n, R, 'shared')
    await Promise.all([guard().open(shared), guard().open(holdOf(40n, R, 'shared'))])
    const rows = await guard().with(shared, async (tx) => (await tx.query('SELECT total FROM invoice')).rows)
    expect(rows).toEqual([{ total: '5' }])
    await expect(guard().with(shared, set(6))).rejects.toMatchObject({
      code: 'mismatch',
      message: 'a shared hold can only read',
    })
    expect(await total()).toBe(5)
    await expect(guard().with(holdOf(39n), set(6))).rejects.toThrow(StaleTokenError)
    await guard().with(holdOf(41n), set(6))
    await expect(guard().open(shared)).rejects.toThrow(StaleTokenError)
  })

  it('keeps a mark per permit, and lets permits work concurrently', async () => {
    const gpu = (token: bigint, slot: number) => holdOf(token, 'gpu', { permits: 2 }, slot)
    // The first opening of a semaphore records its kind, and the second one waits for that.
    await guard().open(gpu(32n, 0))
    let inside = 0
    let most = 0
    const both = async (tx: { query: pg.Pool['query'] }) => {
      most = Math.max(most, ++inside)
      // The first waits for the second.
      for (let look = 0; most < 2 && look < 200; look++) await tx.query('SELECT pg_sleep(0.05)')
      inside--
    }
    await Promise.all([guard().with(gpu(33n, 0), both), guard().with(gpu(34n, 1), both)])
    expect(most).toBe(2)
    expect([await markOf('gpu#0'), await markOf('gpu#1')]).toEqual([33n, 34n])
    await guard().open(gpu(35n, 0))
    await expect(guard().open(gpu(33n, 0))).rejects.toMatchObject({ code: 'stale-token', resource: 'gpu#0' })
    await guard().open(gpu(34n, 1))
  })

  it('rejects a lock after permits, permits after a lock, and another lock on one resource', async () => {
    await guard().open(holdOf(33n, 'gpu', { permits: 2 }, 0))
    await expect(guard().open(holdOf(34n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
    await expect(guard().open(holdOf(34n, 'gpu#0'))).rejects.toMatchObject({ code: 'mismatch' })
    await guard().open(holdOf(33n))
    await expect(guard().open(holdOf(34n, R, { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    const one = fence(pool, { resource: () => 'row-1' })
    await one.open(holdOf(33n, 'lock-a'))
    await expect(one.open(holdOf(34n, 'lock-b'))).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/lock-a/),
    })
    expect(await markOf('row-1')).toBe(33n)
  })

  it('opens all locks of a hold, or the selected one', async () => {
    const both = holdOfLocks([
      { name: 'account/2', mode: 'shared', token: 31n },
      { name: 'account/1', mode: 'exclusive', token: 35n },
    ])
    await guard().with(both, set(6))
    expect([await markOf('account/1'), await markOf('account/2')]).toEqual([35n, 31n])
    await guard().open(holdOf(36n, 'account/2'))
    await expect(guard().with(both, set(7))).rejects.toMatchObject({ resource: 'account/2', token: 31n, mark: 36n })
    await guard().with(both, { lock: 'account/1' }, set(8))
    expect(await total()).toBe(8)
    await expect(guard().with(both, { lock: 'account/2' }, set(9))).rejects.toThrow()
    await expect(guard().with(both, { lock: 'account/3' }, set(9))).rejects.toThrow(InvalidError)
    const joined = fence(pool, { resource: () => 'one' })
    await expect(joined.with(both, set(9))).rejects.toMatchObject({ code: 'mismatch' })
    expect(await total()).toBe(8)
  })

  it('does not deadlock between two holds of several locks', async () => {
    for (let round = 0n; round < 20n; round++) {
      const hold = (token: bigint, names: string[]) =>
        holdOfLocks(names.map((name) => ({ name, mode: 'exclusive' as const, token })))
      const once = fence(pool, { attempts: 1 })
      await Promise.allSettled([
        once.open(hold(100n + round, ['a', 'b', 'c'])),
        once.open(hold(100n + round, ['c', 'b', 'a'])),
        once.open(hold(100n + round, ['b', 'c', 'a'])),
      ]).then((results) => expect(results.map((one) => one.status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']))
    }
  })

  it('retries a transaction after serialization failures, a bounded number of times', async () => {
    const strict = fence(pool, { isolation: 'repeatable read' })
    let runs = 0
    const slow = strict.with(holdOf(34n), async (tx) => {
      runs++
      if (runs === 1) await guard().open(holdOf(1n, 'elsewhere'))
      return tx.query('UPDATE invoice SET total = total + 1')
    })
    await slow
    const units = Array.from({ length: 8 }, (_, i) =>
      strict.with(holdOf(40n), async (tx) => {
        const { rows } = await tx.query('SELECT total FROM invoice')
        await tx.query('UPDATE invoice SET total = $1', [Number(rows[0].total) + 1])
        return i
      }),
    )
    expect((await Promise.all(units)).length).toBe(8)
    expect(await total()).toBe(5 + 1 + 8)

    let attempts = 0
    const never = fence(pool, { attempts: 3 }).with(holdOf(50n), () => {
      attempts++
      throw Object.assign(new Error('could not serialize'), { code: '40001' })
    })
    await expect(never).rejects.toMatchObject({ code: '40001' })
    expect(attempts).toBe(3)
  })

  it('rejects an older snapshot under REPEATABLE READ instead of reading old data', async () => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await client.query('SELECT 1 FROM invoice')
      await guard().with(holdOf(34n), set(6))
      await expect(guard().enter(client, holdOf(35n))).rejects.toMatchObject({ code: '40001' })
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
  })

  it('enters a transaction of the caller, and makes it fail after a rejection', async () => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const tx = await guard().enter(client, holdOf(34n))
      await tx.query('UPDATE invoice SET total = 6')
      await client.query('COMMIT')
      expect(await total()).toBe(6)

      await client.query('BEGIN')
      await expect(guard().enter(client, holdOf(33n))).rejects.toThrow(StaleTokenError)
      await expect(client.query('UPDATE invoice SET total = 7')).rejects.toMatchObject({ code: '25P02' })
      expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
      expect(await total()).toBe(6)
      await expect(guard().enter(client, holdOf(35n))).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(/transaction/),
      })
      await expect(guard().enter(pool, holdOf(35n))).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(/transaction/),
      })
    } finally {
      client.release()
    }
  })

  it('reports a swallowed statement error instead of a commit', async () => {
    const swallowed = guard().with(holdOf(33n), async (tx) => {
      await tx.query('UPDATE invoice SET total = 6')
      await tx.query('SELECT nonsense').catch(() => {})
    })
    await expect(swallowed).rejects.toMatchObject({ code: 'invalid', message: expect.stringMatching(/rollback/) })
    expect(await total()).toBe(5)
  })

  it('keeps no session state, so transaction poolers are safe', async () => {
    const single = new pg.Pool({ connectionString: server.url, max: 1 })
    try {
      await fence(single).with(holdOf(33n), (tx) => tx.query('SELECT 1'))
      const { rows } = await single.query(
        "SELECT current_setting('leasehold.token', true) AS t, current_setting('leasehold.resources', true) AS r, " +
          "(SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory') AS locks, (SELECT count(*)::int FROM pg_prepared_statements) AS prepared",
      )
      expect(rows).toEqual([{ t: '', r: '', locks: 0, prepared: 0 }])
    } finally {
      await single.end()
    }
  })

  it('names both reasons of a rejection, the likely one first', async () => {
    await guard().open(holdOf((3n << 48n) + 7n))
    const error = await guard()
      .open(holdOf((2n << 48n) + 900n))
      .catch((e: unknown) => e)
    expect(error).toMatchObject({
      code: 'stale-token',
      hint: expect.stringMatching(
        /^most likely the lock service was founded again or restored with lower tokens.*this hold is over/,
      ),
    })
    await guard().open(holdOf(1_000_000n, 'other'))
    await expect(guard().open(holdOf(5n, 'other'))).rejects.toMatchObject({
      hint: expect.stringMatching(/^most likely the lock service was founded again/),
    })
    await expect(guard().open(holdOf(999_999n, 'other'))).rejects.toMatchObject({
      hint: expect.stringMatching(/^most likely this hold is over.*founded again or restored with lower tokens/),
    })
  })

  it('rejects invalid tokens, holds, locks and resources', async () => {
    const bad = (token: unknown) => guard().open(holdOf(token as bigint))
    for (const token of [0n, -1n, TOKEN_MAX + 1n, 33, '3x', Number.NaN, null, undefined]) {
      await expect(bad(token), String(token)).rejects.toMatchObject({ code: 'invalid' })
    }
    for (const hold of [
      undefined,
      null,
      33n,
      'x',
      {},
      { names: ['a'] },
      { approximate: true, assertHeld() {} },
      holdOfLocks([]),
    ]) {
      await expect(guard().open(hold as never)).rejects.toMatchObject({ code: 'invalid' })
    }
    await expect(guard().open(holdOf(33n, 'gpu', { permits: 2 }))).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/slot/),
    })
    await expect(guard().open(holdOf(33n, 'gpu', { permits: 2 }, -1))).rejects.toMatchObject({ code: 'invalid' })
    await expect(guard().open(holdOf(33n, 'a\0b'))).rejects.toMatchObject({ code: 'invalid' })
    for (const resource of ['', 'a\0b', 7, 'x'.repeat(2_000), '\ud800']) {
      await expect(fence(pool, { resource: () => resource as string }).open(holdOf(33n))).rejects.toMatchObject({
        code: 'invalid',
      })
    }
    await expect(guard().with(holdOf(33n), undefined as never)).rejects.toThrow()
    expect(() => fence(undefined as never)).toThrow(InvalidError)
    expect(() => fence(pool, { attempts: 0 })).toThrow(InvalidError)
    expect(() => fence(pool, { isolation: 'chaos' as never })).toThrow(InvalidError)
    expect((await pool.query('SELECT count(*)::int AS n FROM leasehold_guard')).rows).toEqual([{ n: 0 }])
  })

  it('accepts any name as a resource', async () => {
    const odd = `it's "odd" \\ $1 {id} \u{1f512} ${'é'.repeat(100)}`
    await guard().open(holdOf(33n, odd))
    expect(await markOf(odd)).toBe(33n)
  })

  it('reports a missing migration', async () => {
    const elsewhere = fence(pool, { schema: 'nowhere' })
    await expect(elsewhere.open(holdOf(33n))).rejects.toMatchObject({
      code: 'invalid',
      hint: expect.stringMatching(/guard sql pg/),
    })
    await pool.query('DELETE FROM leasehold_guard_floor')
    await expect(guard().open(holdOf(33n))).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/floor/),
    })
    await pool.query(guardSql('pg'))
    await guard().open(holdOf(33n))
  })

  it('works in a schema of its own', async () => {
    await pool.query(guardSql('pg', { schema: 'my guard' }))
    const own = fence(pool, { schema: 'my guard' })
    await own.open(holdOf(33n))
    await expect(own.open(holdOf(32n))).rejects.toThrow(StaleTokenError)
    expect(await markOf()).toBe(undefined)
  })

  it('distinguishes a connection lost before the commit from one lost after it was sent', async () => {
    const proxy = await proxyTo(server.port)
    const through = new pg.Pool({ host: '127.0.0.1', port: proxy.port, user: 'postgres', database: 'postgres' })
    through.on('error', () => {})
    try {
      const before = fence(through).with(holdOf(33n), async (tx) => {
        await tx.query('UPDATE invoice SET total = 6')
        proxy.cut()
        await tx.query('SELECT 1')
      })
      await expect(before).rejects.toThrow(UnavailableError)
      expect(await total()).toBe(5)

      const during = fence(through).with(holdOf(33n), async (tx) => {
        await tx.query('UPDATE invoice SET total = 7')
        proxy.cutAfterNextRequest()
      })
      await expect(during).rejects.toThrow(UnknownOutcomeError)
      await expect.poll(() => total()).toBe(7)

      proxy.cutAfterNextRequest()
      const alone = fencedUpdate(through, holdOf(34n), {
        table: 'invoice',
        where: { id: 'invoice-42' },
        set: { total: 8 },
      })
      await expect(alone).rejects.toThrow(UnknownOutcomeError)
    } finally {
      await through.end()
      await proxy.close()
    }
    const nobody = new pg.Pool({ host: '127.0.0.1', port: proxy.port, user: 'postgres' })
    await expect(fence(nobody).open(holdOf(33n))).rejects.toMatchObject({ code: 'unreachable', retryable: true })
    await nobody.end()
  })

  it('survives a backend that is terminated during a unit', async () => {
    const ended = guard().with(holdOf(33n), async (tx) => {
      const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid])
      await tx.query('UPDATE invoice SET total = 9')
    })
    await expect(ended).rejects.toThrow(UnavailableError)
    await guard().with(holdOf(33n), set(6))
    expect(await total()).toBe(6)
  })

  // --- a mark on the row ---

  it('keeps the mark on the row in the column form', async () => {
    const row = { table: 'invoice', where: { id: 'invoice-42' } }
    expect(await fencedUpdate(pool, holdOf(34n), row)).toEqual({ id: 'invoice-42', total: '5' })
    await expect(fencedUpdate(pool, holdOf(33n), { ...row, set: { total: 6 } })).rejects.toMatchObject({
      code: 'stale-token',
      token: 33n,
      mark: 34n,
    })
    expect(await fencedUpdate(pool, holdOf(34n), { ...row, set: { total: 6 } })).toEqual({
      id: 'invoice-42',
      total: '6',
    })
    expect(await fencedUpdate(pool, holdOf(34n), { ...row, set: { total: 6 } })).toEqual({
      id: 'invoice-42',
      total: '6',
    })
    await expect(fencedUpdate(pool, holdOf(35n, 'another'), row)).rejects.toMatchObject({ code: 'mismatch' })
    const missing = fencedUpdate(pool, holdOf(35n), { table: 'invoice', where: { id: 'nope' }, set: { total: 1 } })
    await expect(missing).rejects.toThrow(MissingRowError)
    await expect(fencedUpdate(pool, holdOf(36n, R, 'shared'), row)).rejects.toMatchObject({ code: 'mismatch' })
    await expect(fencedUpdate(pool, holdOf(36n, R, { permits: 2 }, 0), row)).rejects.toMatchObject({ code: 'mismatch' })
    await expect(fencedUpdate(pool, holdOf(36n), { table: 'invoice', where: {} })).rejects.toMatchObject({
      code: 'invalid',
    })
    await expect(fencedUpdate(pool, holdOf(36n), { ...row, set: { leasehold_token: 1 } })).rejects.toMatchObject({
      code: 'invalid',
    })
    await expect(fencedUpdate(pool, holdOf(36n), { table: 'nope', where: { id: 1 } })).rejects.toMatchObject({
      code: '42P01',
    })
  })

  it('re-checks the row after waiting for a later holder', async () => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await fencedUpdate(client, holdOf(34n), { table: 'invoice', where: { id: 'invoice-42' }, set: { total: 6 } })
      const late = fencedUpdate(pool, holdOf(33n), { table: 'invoice', where: { id: 'invoice-42' }, set: { total: 7 } })
      const answer = late.catch((e: unknown) => e)
      await expect
        .poll(
          async () =>
            (await pool.query('SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = $1', ['Lock']))
              .rows[0].n,
        )
        .toBe(1)
      await client.query('COMMIT')
      expect(await answer).toBeInstanceOf(StaleTokenError)
    } finally {
      client.release()
    }
    expect(await total()).toBe(6)
  })

  // --- the trigger ---

  it('rejects every writer that has not opened in the trigger form', async () => {
    for (const sql of [
      'UPDATE fenced SET total = 6',
      "INSERT INTO fenced VALUES ('x', 1)",
      'DELETE FROM fenced',
      'TRUNCATE fenced',
      "BEGIN; SELECT set_config('leasehold.token', '33', true); UPDATE fenced SET total = 6; COMMIT",
    ]) {
      const client = await pool.connect()
      await expect(client.query(sql), sql).rejects.toMatchObject({ code: 'LH001' })
      await client.query('ROLLBACK')
      client.release()
    }
    expect(await total('fenced')).toBe(5)
    await guard().with(holdOf(33n), (tx) => tx.query('UPDATE fenced SET total = 6'))
    expect(await total('fenced')).toBe(6)
    await expect(guard().with(holdOf(33n), (tx) => tx.query('TRUNCATE fenced'))).rejects.toMatchObject({
      code: 'invalid',
    })
  })

  it('rejects rows of other resources, even if a row is moved or deleted', async () => {
    const other = holdOf(33n, 'billing/invoice-43')
    const run = (sql: string) => guard().with(other, (tx) => tx.query(sql))
    await run("INSERT INTO fenced VALUES ('invoice-43', 1)")
    await expect(run('UPDATE fenced SET total = 6')).rejects.toMatchObject({ code: 'mismatch' })
    await expect(run("DELETE FROM fenced WHERE id = 'invoice-42'")).rejects.toMatchObject({ code: 'mismatch' })
    await expect(run("UPDATE fenced SET id = 'invoice-44' WHERE id = 'invoice-43'")).rejects.toMatchObject({
      code: 'mismatch',
    })
    await run("UPDATE fenced SET total = 2 WHERE id = 'invoice-43'")
    await run("DELETE FROM fenced WHERE id = 'invoice-43'")
    expect(await markOf('billing/invoice-43')).toBe(33n)
    await guard().open(holdOf(34n, 'billing/invoice-43'))
    await expect(run("INSERT INTO fenced VALUES ('invoice-43', 1)")).rejects.toThrow(StaleTokenError)
  })

  it('rejects a stale token that another program sets itself', async () => {
    await guard().open(holdOf(34n))
    const client = await pool.connect()
    try {
      for (const [token, code] of [
        ['33', 'LH002'],
        ['35', 'LH001'],
      ] as const) {
        await client.query('BEGIN')
        await client.query("SELECT set_config('leasehold.token', $1, true)", [token])
        await expect(client.query('UPDATE fenced SET total = 7')).rejects.toMatchObject({ code })
        await client.query('ROLLBACK')
      }
      await client.query('BEGIN')
      await client.query("SELECT set_config('leasehold.token', '34', true)")
      await client.query('UPDATE fenced SET total = 7')
      await client.query('COMMIT')
    } finally {
      client.release()
    }
    expect(await total('fenced')).toBe(7)
  })

  it('rejects incomplete options of the trigger and column forms', () => {
    expect(() => guardSql('oracle' as never)).toThrow(InvalidError)
    expect(() => guardSql('pg', { form: 'magic' as never })).toThrow(InvalidError)
    expect(() => guardSql('pg', { form: 'column' })).toThrow(InvalidError)
    expect(() => guardSql('pg', { form: 'trigger', on: 'fenced' })).toThrow(InvalidError)
    expect(() => guardSql('pg', { form: 'trigger', on: 'fenced', resource: 'a{' })).toThrow(InvalidError)
    expect(() => guardSql('pg', { form: 'trigger', on: '', resource: 'a' })).toThrow(InvalidError)
    expect(() => guardSql('sqlite', { form: 'trigger', on: 'fenced', resource: 'a' })).toThrow(InvalidError)
  })

  // --- prune ---

  it('prunes marks below the oldest present token, and rejects those tokens from then on', async () => {
    await guard().open(holdOf(33n, 'old'))
    await guard().open(holdOf(40n, 'kept'))
    await guard().open(holdOf(34n, 'gpu', { permits: 2 }, 0))
    await guard().open(holdOf(41n, 'gpu', { permits: 2 }, 1))
    await guard().open(holdOf(35n, 'cpu', { permits: 2 }, 0))
    let released = 0
    const locks = {
      acquire: async (name: string) => ({ ...holdOf(50n, name), release: async () => void released++ }),
      query: async ({ cursor }: { cursor?: string }) =>
        cursor === undefined
          ? { held: [{ locks: [{ token: 45n }] }, { locks: [{ token: 50n }] }], next: 'more' }
          : { held: [{ locks: [{ token: 44n }, { token: 40n }] }], next: undefined },
    }
    expect(await guard().prune(locks)).toEqual({ floor: 40n, deleted: 3 })
    expect(released).toBe(1)
    const { rows } = await pool.query('SELECT resource FROM leasehold_guard ORDER BY resource')
    expect(rows.map((row) => row.resource)).toEqual(['gpu', 'gpu#1', 'kept'])
    await expect(guard().open(holdOf(33n, 'old'))).rejects.toMatchObject({ code: 'stale-token', mark: 40n })
    await expect(guard().open(holdOf(39n, 'new'))).rejects.toThrow(StaleTokenError)
    await guard().open(holdOf(40n, 'old'))
    expect(await guard().raiseFloor(7n)).toEqual({ floor: 40n, deleted: 0 })
    await guard().open(holdOf(60n, 'cpu'))
  })

  it.each(['read committed', 'repeatable read', 'serializable'] as const)(
    'sees the new floor when it had to wait for a prune (%s)',
    async (isolation) => {
      await guard().open(holdOf(40n))
      const client = await pool.connect()
      await client.query('BEGIN; LOCK TABLE leasehold_guard_floor IN ACCESS EXCLUSIVE MODE')
      await client.query('UPDATE leasehold_guard_floor SET token = 41')
      await client.query('DELETE FROM leasehold_guard')
      const late = fence(pool, { isolation })
        .with(holdOf(33n), set(6))
        .catch((e: unknown) => e)
      await expect.poll(async () => (await pool.query(WAITING)).rows[0].n).toBe(1)
      await client.query('COMMIT')
      client.release()
      expect(await late).toMatchObject({ code: 'stale-token', token: 33n, mark: 41n })
      expect(await total()).toBe(5)
    },
  )

  it('never accepts a stale writer between raising the floor and pruning the mark', async () => {
    await guard().open(holdOf(40n))
    const client = await pool.connect()
    let resume: () => void = () => {}
    const resumed = new Promise<void>((resolve) => {
      resume = resolve
    })
    let queries = 0
    // Stopped between the statement that reads the floor and the one that reads the mark.
    const stopped = {
      async query(text: string, values?: unknown[]) {
        const answer = await client.query(text, values)
        if (++queries === 1) await resumed
        return answer
      },
    }
    await client.query('BEGIN')
    const stale = guard()
      .enter(stopped, holdOf(33n))
      .catch((e: unknown) => e)
    await expect.poll(() => queries).toBe(1)
    let pruned = false
    const prune = guard()
      .raiseFloor(41n)
      .then((result) => {
        pruned = true
        return result
      })
    await expect.poll(async () => pruned || (await pool.query(WAITING)).rows[0].n === 1).toBe(true)
    expect(pruned).toBe(false)
    resume()
    expect(await stale).toMatchObject({ code: 'stale-token', token: 33n, mark: 40n })
    await client.query('ROLLBACK')
    client.release()
    expect(await prune).toEqual({ floor: 41n, deleted: 1 })

    for (let round = 0n; round < 25n; round++) {
      const live = 100n + round * 10n
      await guard().open(holdOf(live, 'race'))
      const results = await Promise.allSettled([
        guard().raiseFloor(live + 1n),
        guard().open(holdOf(live - 1n, 'race')),
        guard().open(holdOf(live - 1n, 'race')),
        guard().open(holdOf(live + 1n, 'race')),
      ])
      expect(results.map((one) => one.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
      expect(await markOf('race')).toBe(live + 1n)
    }
  })
})
