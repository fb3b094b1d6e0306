import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HoldLostError, InvalidError, LimitError, StaleTokenError, TOKEN_MAX, UnavailableError } from '@leasehold/core'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { guardSql } from '../src/migrations.js'
import { fence, fencedUpdate, MissingRowError } from '../src/sqlite.js'
import { holdOf, holdOfLocks } from './support/holds.js'

const R = 'billing/invoice-42'

describe('the guard of SQLite', () => {
  let folder: string
  let db: Database.Database
  const open = () => new Database(join(folder, 'shop.sqlite'))

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-fence-'))
    db = open()
    db.exec(guardSql('sqlite'))
    db.exec(guardSql('sqlite'))
    db.exec('CREATE TABLE invoice (id TEXT PRIMARY KEY, total INTEGER NOT NULL)')
    db.exec("INSERT INTO invoice (id, total) VALUES ('invoice-42', 5)")
    db.exec(guardSql('sqlite', { form: 'column', on: 'invoice' }))
  })
  afterEach(() => {
    db.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const total = () => (db.prepare('SELECT total FROM invoice').get() as { total: number }).total
  const markOf = (resource = R) => {
    const sql = 'SELECT CAST(token AS TEXT) AS token FROM leasehold_guard WHERE resource = ?'
    const row = db.prepare(sql).get(resource) as { token: string } | undefined
    return row === undefined ? undefined : BigInt(row.token)
  }
  const set = (value: number) => (tx: Database.Database) => tx.prepare('UPDATE invoice SET total = ?').run(value)
  const guard = () => fence(db)

  it('accepts a token at or above the mark, rejects one below, and stores the mark with the effect', async () => {
    await guard().with(holdOf(33n), set(6))
    await guard().with(holdOf(33n), set(7))
    await guard().with(holdOf(34n), async (tx) => set(8)(tx))
    const error = await guard()
      .with(holdOf(33n), set(9))
      .catch((e: unknown) => e)
    expect(error).toBeInstanceOf(StaleTokenError)
    expect(error).toMatchObject({ resource: R, token: 33n, mark: 34n })
    expect([markOf(), total()]).toEqual([34n, 8])
  })

  it('raises the mark when it is opened for reading', async () => {
    expect(await guard().with(holdOf(34n), () => total())).toBe(5)
    await expect(guard().with(holdOf(33n), set(6))).rejects.toThrow(StaleTokenError)
    await guard().open(holdOf(35n))
    await expect(guard().with(holdOf(34n), set(6))).rejects.toThrow(StaleTokenError)
  })

  it('compares all 63 bits', async () => {
    await guard().open(holdOf(TOKEN_MAX))
    await expect(guard().open(holdOf(TOKEN_MAX - 1n))).rejects.toMatchObject({ mark: TOKEN_MAX })
    await guard().open(holdOf(9_007_199_254_740_993n, 'other'))
    await expect(guard().open(holdOf(9_007_199_254_740_992n, 'other'))).rejects.toThrow(StaleTokenError)
  })

  it('rolls the mark back with the transaction, after an error and after a loss', async () => {
    await guard().open(holdOf(33n))
    const boom = new Error('boom')
    const failing = guard().with(holdOf(34n), (tx) => {
      set(9)(tx)
      throw boom
    })
    await expect(failing).rejects.toBe(boom)
    const hold = holdOf(35n)
    const losing = guard().with(hold, async (tx) => {
      set(9)(tx)
      hold.lose()
    })
    await expect(losing).rejects.toThrow(HoldLostError)
    await expect(guard().with(hold, set(9))).rejects.toThrow(HoldLostError)
    expect([markOf(), total(), db.inTransaction]).toEqual([33n, 5, false])
    await guard().with(holdOf(33n), set(6))
    expect(total()).toBe(6)
  })

  it('lets shared holds only read, and the connection write again afterwards', async () => {
    const shared = holdOf(40n, R, 'shared')
    expect(await guard().with(shared, () => total())).toBe(5)
    await expect(guard().with(shared, set(6))).rejects.toMatchObject({
      code: 'mismatch',
      message: 'a shared hold can only read',
    })
    db.exec('BEGIN IMMEDIATE')
    await expect(guard().enter(db, shared)).rejects.toMatchObject({ code: 'mismatch' })
    db.exec('ROLLBACK')
    await guard().with(holdOf(41n), set(6))
    await expect(guard().open(shared)).rejects.toThrow(StaleTokenError)
    expect(total()).toBe(6)
  })

  it('keeps a mark per permit, and rejects the other kind and another lock', async () => {
    const gpu = (token: bigint, slot: number) => holdOf(token, 'gpu', { permits: 2 }, slot)
    await guard().open(gpu(33n, 0))
    await guard().open(gpu(34n, 1))
    await guard().open(gpu(35n, 0))
    await expect(guard().open(gpu(33n, 0))).rejects.toMatchObject({ code: 'stale-token', resource: 'gpu#0' })
    await guard().open(gpu(34n, 1))
    await expect(guard().open(holdOf(36n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
    await guard().open(holdOf(33n))
    await expect(guard().open(holdOf(34n, R, { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    const one = fence(db, { resource: () => 'row-1' })
    await one.open(holdOf(33n, 'lock-a'))
    await expect(one.open(holdOf(34n, 'lock-b'))).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/lock-a/),
    })
  })

  it('opens all locks of a hold, or the selected one', async () => {
    const both = holdOfLocks([
      { name: 'account/2', mode: 'shared', token: 31n },
      { name: 'account/1', mode: 'exclusive', token: 35n },
    ])
    await guard().with(both, set(6))
    expect([markOf('account/1'), markOf('account/2')]).toEqual([35n, 31n])
    await guard().open(holdOf(36n, 'account/2'))
    await expect(guard().with(both, set(7))).rejects.toMatchObject({ resource: 'account/2', mark: 36n })
    await guard().with(both, { lock: 'account/1' }, set(8))
    expect(total()).toBe(8)
  })

  it('enters a transaction of the caller, synchronously and asynchronously', async () => {
    await expect(guard().enter(db, holdOf(33n))).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/transaction/),
    })
    db.exec('BEGIN IMMEDIATE')
    const tx = await guard().enter(db, holdOf(33n))
    set(6)(tx)
    db.exec('COMMIT')
    const move = db.transaction((hold: ReturnType<typeof holdOf>) => {
      set(7)(guard().enterSync(db, hold))
    })
    move.immediate(holdOf(34n))
    expect(total()).toBe(7)
    db.exec('BEGIN IMMEDIATE')
    await expect(guard().enter(db, holdOf(33n))).rejects.toThrow(StaleTokenError)
    // A rejected transaction has ended: later statements are not part of it.
    expect(db.inTransaction).toBe(false)
    db.exec('BEGIN')
    await expect(guard().with(holdOf(35n), set(8))).rejects.toMatchObject({
      code: 'invalid',
      hint: expect.stringMatching(/enter/),
    })
    db.exec('ROLLBACK')
  })

  it('queues units of one connection, for a limited time', async () => {
    const seen: string[] = []
    const slow = (name: string) => async () => {
      seen.push(`${name} begins`)
      await new Promise((resolve) => setTimeout(resolve, 10))
      seen.push(`${name} ends`)
    }
    await Promise.all(['a', 'b', 'c'].map((name) => guard().with(holdOf(33n), slow(name))))
    expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
    const short = fence(db, { busyTimeoutMs: 20 })
    const nested = short.with(holdOf(33n), () => short.with(holdOf(34n), () => {}))
    await expect(nested).rejects.toThrow(LimitError)
    await short.with(holdOf(33n), set(6))
    expect(total()).toBe(6)
  })

  it('waits for a writing connection, and times out', async () => {
    const other = open()
    try {
      other.exec('BEGIN IMMEDIATE')
      const waiting = guard().with(holdOf(33n), set(6))
      await expect(fence(open(), { busyTimeoutMs: 30 }).open(holdOf(33n))).rejects.toThrow(UnavailableError)
      other.exec('COMMIT')
      await waiting
      expect(total()).toBe(6)
    } finally {
      other.close()
    }
  })

  it('rejects a body that ends the transaction itself', async () => {
    const ending = guard().with(holdOf(33n), (tx) => tx.exec('COMMIT'))
    await expect(ending).rejects.toMatchObject({ code: 'invalid' })
  })

  it('rejects invalid tokens, holds and databases', async () => {
    for (const token of [0n, -1n, TOKEN_MAX + 1n, 33, '3x', undefined]) {
      await expect(guard().open(holdOf(token as bigint)), String(token)).rejects.toMatchObject({ code: 'invalid' })
    }
    for (const hold of [undefined, null, 33n, {}, holdOfLocks([])]) {
      await expect(guard().open(hold as never)).rejects.toMatchObject({ code: 'invalid' })
    }
    expect(() => fence({} as never)).toThrow(InvalidError)
    expect(() => fence(db, { busyTimeoutMs: -1 })).toThrow(InvalidError)
    const empty = new Database(':memory:')
    await expect(fence(empty).open(holdOf(33n))).rejects.toMatchObject({
      code: 'invalid',
      hint: expect.stringMatching(/guard sql sqlite/),
    })
    empty.close()
  })

  it('keeps the mark on the row in the column form', () => {
    const row = { table: 'invoice', where: { id: 'invoice-42' } }
    expect(fencedUpdate(db, holdOf(34n), row)).toMatchObject({ id: 'invoice-42', total: 5 })
    expect(() => fencedUpdate(db, holdOf(33n), { ...row, set: { total: 6 } })).toThrow(StaleTokenError)
    expect(fencedUpdate(db, holdOf(34n), { ...row, set: { total: 6 } })).toMatchObject({ total: 6 })
    expect(fencedUpdate(db, holdOf(34n), { ...row, set: { total: 6 } })).not.toHaveProperty('leasehold_token')
    expect(() => fencedUpdate(db, holdOf(35n, 'another'), row)).toThrow(/belongs to the lock/)
    const missing = { table: 'invoice', where: { id: 'nope' }, set: { total: 1 } }
    expect(() => fencedUpdate(db, holdOf(35n), missing)).toThrow(MissingRowError)
    expect(() => fencedUpdate(db, holdOf(36n, R, 'shared'), row)).toThrow(InvalidError)
    expect(() => fencedUpdate(db, holdOf(TOKEN_MAX), { ...row, set: { total: 7 } })).not.toThrow()
    expect(() => fencedUpdate(db, holdOf(TOKEN_MAX - 1n), { ...row, set: { total: 8 } })).toThrow(StaleTokenError)
  })

  it('prunes marks below the floor, and rejects those tokens from then on', async () => {
    await guard().open(holdOf(33n, 'old'))
    await guard().open(holdOf(40n, 'kept'))
    await guard().open(holdOf(34n, 'gpu', { permits: 2 }, 0))
    await guard().open(holdOf(41n, 'gpu', { permits: 2 }, 1))
    await guard().open(holdOf(35n, 'cpu', { permits: 2 }, 0))
    const locks = {
      acquire: async (name: string) => ({ ...holdOf(40n, name), release: async () => {} }),
      query: async () => ({ held: [], next: undefined }),
    }
    expect(await guard().prune(locks)).toEqual({ floor: 40n, deleted: 3 })
    const rows = db.prepare('SELECT resource FROM leasehold_guard ORDER BY resource').all() as { resource: string }[]
    expect(rows.map((row) => row.resource)).toEqual(['gpu', 'gpu#1', 'kept'])
    await expect(guard().open(holdOf(39n, 'old'))).rejects.toMatchObject({ code: 'stale-token', mark: 40n })
    await guard().open(holdOf(40n, 'old'))
    await guard().open(holdOf(60n, 'cpu'))
  })
})
