import { connect } from 'leasehold'
import Database from 'libsql'
import type { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { type Fenced, guardSql, handHeld } from '../src/index.js'
import { fence as fencePg, type PgGuard } from '../src/pg.js'
import { fence } from '../src/sqlite.js'

describe('guards', () => {
  it('accept a hold of the client, whose release waits for the effect', async () => {
    await using locks = await connect('memory:fence-hold')
    const db = new Database(':memory:')
    db.exec(guardSql('sqlite'))
    const hold = await locks.acquire('invoice-42')
    const order: string[] = []
    const effect = fence(db).with(hold, async () => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      order.push('effect')
    })
    const release = hold.release().then(() => order.push('released'))
    await Promise.all([effect, release])
    expect(order).toEqual(['effect', 'released'])
    await expect(fence(db).with(hold, () => order.push('late'))).rejects.toMatchObject({ code: 'not-holder' })
    expect(order).toEqual(['effect', 'released'])
    const permit = await locks.acquire('gpu', { permits: 2 })
    await fence(db).open(permit)
    const marks = db.prepare('SELECT resource FROM leasehold_guard ORDER BY resource').all() as { resource: string }[]
    expect(marks.map((mark) => mark.resource)).toEqual(['gpu', 'gpu#0', 'invoice-42'])
    db.close()
  })

  it('prune against the present holds of a real service', async () => {
    await using locks = await connect('memory:fence-prune')
    const db = new Database(':memory:')
    db.exec(guardSql('sqlite'))
    const guard = fence(db)
    const old = await locks.acquire('old')
    await guard.open(old)
    await old.release()
    const live = await locks.acquire('live')
    await guard.open(live)
    expect(await guard.prune(locks)).toEqual({ floor: live.token, deleted: 1 })
    await guard.open(live)
    await live.release()
    const pruned = await guard.prune(locks)
    expect(pruned.deleted).toBe(1)
    expect(pruned.floor).toBeGreaterThan(live.token)
    await expect(guard.open(handHeld('live', live.token))).rejects.toMatchObject({ code: 'stale-token' })
    await locks.request('live', (hold) => guard.open(hold))
    db.close()
  })

  it('accept a hold that is built from a token in the environment', () => {
    const hold = handHeld('invoice-42', '33')
    expect([hold.names, hold.tokenOf('invoice-42'), hold.mode]).toEqual([['invoice-42'], 33n, 'exclusive'])
    expect(() => handHeld('invoice-42', undefined)).toThrow(/token/)
    expect(() => handHeld('invoice-42', '-1')).toThrow(/token/)
    expect(() => handHeld('invoice-42', 33 as never)).toThrow(/not a number/)
  })

  it('require an opened transaction by type', () => {
    const write = (tx: Fenced<Database.Database>) => tx
    const db = new Database(':memory:')
    // @ts-expect-error: a database without an opening is not fenced
    write(db)
    const guard = (pool: Pool): PgGuard<import('pg').PoolClient> => fencePg(pool)
    // @ts-expect-error: an approximate lock has no token
    const wrong = () => fence(db).open({ approximate: true, assertHeld() {} })
    expect([typeof guard, typeof wrong]).toEqual(['function', 'function'])
    db.close()
  })
})
