import { StaleTokenError, UnknownOutcomeError } from '@leasehold/core'
import { fence, type MongoGuard } from '@leasehold/fence/mongo'
import { provesFencing } from '@leasehold/fence/testkit'
import { type Collection, type Document, MongoClient } from 'mongodb'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { holdOf, holdOfLocks } from '../../packages/fence/test/support/holds.js'
import { FakeMongo } from './fakes/mongo.js'
import { storm } from './verify/storm.js'

const LOCK = 'billing/invoice-42'
const options = { platform: { pause: () => Promise.resolve() } }
interface Invoice extends Document {
  _id: string
}
const totalOf = (document: { total?: unknown } | null) => Number(document?.total ?? 0)

describe('the guard of MongoDB, with the driver, against a fake', () => {
  const fake = new FakeMongo()
  let url: string
  let client: MongoClient
  let invoices: Collection<Invoice>
  let guard: MongoGuard
  beforeAll(async () => {
    url = await fake.start()
    client = new MongoClient(url)
    invoices = client.db('shop').collection<Invoice>('invoices')
    guard = fence(invoices, options)
  })
  afterAll(async () => {
    await client.close()
    await fake.stop()
  })
  beforeEach(() => {
    fake.documents.clear()
    fake.faults.length = 0
    fake.commands.length = 0
  })
  const stored = (id = LOCK) => fake.find('invoices', id)

  it('keeps data and mark in one document, and refuses what is late', async () => {
    await guard.with(holdOf(33n), async (invoice) => {
      expect(invoice.document).toBe(null)
      expect(await invoice.update({ $set: { total: 7 } })).toEqual({ _id: LOCK, total: 7 })
      await invoice.update({ $inc: { total: 1 } })
    })
    expect(stored()).toMatchObject({ total: 8, leasehold: { mark: 33n, kind: 'lock', lock: LOCK } })
    for (const command of fake.commands) expect(command.writeConcern).toEqual({ w: 'majority' })
    expect(totalOf(await guard.read(holdOf(34n)))).toBe(8)
    const late = await guard.update(holdOf(33n), { $set: { total: 9 } }).catch((e: unknown) => e)
    expect(late).toBeInstanceOf(StaleTokenError)
    expect(late).toMatchObject({ token: 33n, mark: 34n, resource: LOCK })
    expect(await guard.latest(LOCK)).toEqual({ _id: LOCK, total: 8 })
  })

  it('opens what was there before the guard, and compares tokens with all their digits', async () => {
    await invoices.insertOne({ _id: LOCK, total: 5 })
    expect(totalOf(await guard.read(holdOf(9_007_199_254_740_993n)))).toBe(5)
    const late = await guard.open(holdOf(9_007_199_254_740_992n)).catch((e: unknown) => e)
    expect(late).toMatchObject({ code: 'stale-token', mark: 9_007_199_254_740_993n })
    expect(stored()).toMatchObject({ leasehold: { mark: 9_007_199_254_740_993n } })
  })

  it('counts a change that changes nothing as accepted', async () => {
    await guard.update(holdOf(33n), { $set: { total: 7 } })
    await guard.update(holdOf(33n), { $set: { total: 7 } })
    expect(totalOf(await guard.latest(LOCK))).toBe(7)
  })

  it('keeps the mark of what is deleted', async () => {
    await guard.with(holdOf(33n), (invoice) => invoice.replace({ total: 7 }))
    await guard.with(holdOf(34n), (invoice) => invoice.delete())
    expect(await guard.latest(LOCK)).toBe(null)
    await expect(guard.update(holdOf(33n), { $set: { total: 1 } })).rejects.toThrow(StaleTokenError)
    expect(await guard.read(holdOf(34n))).toBe(null)
  })

  it('raises the mark in a transaction of the user, and rolls it back with it', async () => {
    const others = client.db('shop').collection<Invoice>('others')
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await guard.enter(session, holdOf(33n))
        await others.findOneAndUpdate({ _id: 'a' }, { $set: { n: 1 } }, { session, upsert: true })
      }),
    )
    expect([stored()?.leasehold, fake.find('others', 'a')?.n]).toEqual([expect.objectContaining({ mark: 33n }), 1])
    const failing = client.withSession((session) =>
      session.withTransaction(async () => {
        await guard.enter(session, holdOf(34n))
        throw new Error('changed my mind')
      }),
    )
    await expect(failing).rejects.toThrow('changed my mind')
    expect(stored()).toMatchObject({ leasehold: { mark: 33n } })
    await guard.open(holdOf(35n))
    const late = client.withSession((session) =>
      session.withTransaction(async () => {
        await guard.enter(session, holdOf(33n))
        await others.findOneAndUpdate({ _id: 'a' }, { $set: { n: 2 } }, { session, upsert: true })
      }),
    )
    await expect(late).rejects.toThrow(StaleTokenError)
    expect(fake.find('others', 'a')?.n).toBe(1)
    const outside = client.withSession((session) => guard.enter(session, holdOf(36n)))
    await expect(outside).rejects.toMatchObject({ code: 'invalid', hint: expect.stringMatching(/withTransaction/) })
  })

  it('makes a late transaction wait or fail, whatever the order', async () => {
    await guard.open(holdOf(33n))
    let next: Promise<unknown> = Promise.resolve()
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await guard.enter(session, holdOf(33n))
        next = guard.update(holdOf(34n), { $set: { total: 1 } })
        await new Promise((resolve) => setTimeout(resolve, 20))
        expect(stored()).toMatchObject({ leasehold: { mark: 33n } })
        void next.catch(() => {})
      }),
    )
    await expect.poll(() => (stored()?.leasehold as { mark: bigint } | undefined)?.mark).toBe(34n)
    // Nothing of it may reach the next test.
    await next.catch(() => {})
  })

  it('does not apply a change twice when answers are lost', async () => {
    const once = new MongoClient(url, { retryWrites: false })
    for (const driver of [client, once]) {
      const guarded = fence(driver.db('shop').collection('invoices'), options)
      await guarded.with(holdOf(33n), (invoice) => invoice.replace({ total: 0 }))
      for (const [i, fault] of (['applied, then cut', 'cut', 'write conflict', 'not majority'] as const).entries()) {
        await guarded.with(holdOf(33n), async (invoice) => {
          fake.faults.push(fault)
          await invoice.update({ $inc: { total: 1 } })
        })
        expect(totalOf(await guarded.latest(LOCK)), fault).toBe(i + 1)
      }
    }
    await once.close()
  })

  it('says when it does not know, and when MongoDB is not there', async () => {
    const once = new MongoClient(url, { retryWrites: false })
    const few = fence(once.db('shop').collection('invoices'), { ...options, attempts: 2 })
    await few.with(holdOf(33n), async (invoice) => {
      fake.faults.push('not majority', 'cut')
      await expect(invoice.update({ $set: { total: 1 } })).rejects.toBeInstanceOf(UnknownOutcomeError)
    })
    await few.with(holdOf(33n), async (invoice) => {
      fake.faults.push('write conflict', 'write conflict')
      await expect(invoice.update({ $set: { total: 2 } })).rejects.toMatchObject({ code: 'unreachable' })
    })
    expect(totalOf(await guard.latest(LOCK))).toBe(1)
    await once.close()
    const nobody = new MongoClient('mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200')
    const none = fence(nobody.db('shop').collection('invoices'), { ...options, attempts: 1 })
    await expect(none.open(holdOf(33n))).rejects.toMatchObject({ code: 'unreachable' })
    await expect(none.latest(LOCK)).rejects.toMatchObject({ code: 'unreachable' })
    await nobody.close()
  })

  it('refuses two changes of one hold at the same time, and a document that was removed around the guard', async () => {
    const hold = holdOf(33n)
    const unit = guard.with(hold, async (invoice) => {
      await guard.update(hold, { $set: { total: 1 } })
      await invoice.update({ $set: { total: 2 } })
    })
    await expect(unit).rejects.toMatchObject({ code: 'invalid', message: expect.stringMatching(/twice/) })
    const gone = guard.with(hold, async (invoice) => {
      fake.documents.clear()
      await invoice.update({ $set: { total: 2 } })
    })
    await expect(gone).rejects.toMatchObject({ name: 'MissingRowError' })
  })

  it('keeps a mark for each permit, lets shared holds read, and refuses the wrong lock and kind', async () => {
    const gpu = (token: bigint, slot: number) => holdOf(token, 'gpu', { permits: 2 }, slot)
    const set = (total: number) => ({ $set: { total } })
    await guard.update(gpu(33n, 0), set(1))
    await guard.update(gpu(34n, 1), set(2))
    expect(totalOf(await guard.read(gpu(33n, 0)))).toBe(1)
    await guard.open(gpu(35n, 0))
    await expect(guard.open(gpu(33n, 0))).rejects.toThrow(StaleTokenError)
    await expect(guard.open(holdOf(36n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
    await guard.open(holdOf(36n, 'plain'))
    await expect(guard.open(holdOf(37n, 'plain', { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    const one = fence(invoices, { ...options, resource: () => 'one' })
    await one.open(holdOf(33n, 'lock a'))
    await expect(one.open(holdOf(34n, 'lock b'))).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/lock a/),
    })
    const shared = holdOf(40n, 'plain', 'shared')
    expect(await guard.read(shared)).toBe(null)
    await expect(guard.update(shared, set(1))).rejects.toMatchObject({ code: 'mismatch' })
    const both = holdOfLocks(['a', 'b'].map((name) => ({ name, mode: 'exclusive' as const, token: 33n })))
    await expect(guard.open(both)).rejects.toMatchObject({ code: 'invalid' })
    await guard.open(both, { lock: 'a' })
  })

  it('refuses what is no token, what belongs to the guard, and what is no update', async () => {
    for (const token of [33, -1n, 2n ** 63n]) {
      await expect(guard.open(holdOf(token as never))).rejects.toMatchObject({ code: 'invalid' })
    }
    for (const change of [
      { $set: { leasehold: 1 } },
      { $unset: { 'leasehold.mark': 1 } },
      { $rename: { total: 'leasehold' } },
      { total: 1 },
      [{ $set: { total: 1 } }],
    ]) {
      await expect(guard.update(holdOf(33n), change as never)).rejects.toMatchObject({ code: 'invalid' })
    }
    await expect(guard.with(holdOf(33n), (invoice) => invoice.replace({ leasehold: 1 }))).rejects.toMatchObject({
      code: 'invalid',
    })
    await expect(guard.update(holdOf(33n), { $wrong: { total: 1 } })).rejects.toMatchObject({
      name: 'MongoServerError',
    })
    expect(() => fence({} as never)).toThrow(/collection/)
    const lost = holdOf(33n)
    lost.lose()
    await expect(guard.open(lost)).rejects.toMatchObject({ code: 'lost' })
  })

  it('is proved by the test kit, and loses nothing when many write at once', async () => {
    await provesFencing(
      {
        open: (hold) => guard.open(hold),
        read: async (hold) => totalOf(await guard.read(hold)),
        write: (hold, total) => guard.update(hold, { $set: { total } }),
        remove: (hold) => guard.with(hold, (invoice) => invoice.delete()),
      },
      { log: () => {} },
    )
    const { acknowledged, value } = await storm(
      150,
      {
        unit: (hold) =>
          guard.with(hold, (invoice) => invoice.update({ $set: { total: totalOf(invoice.document) + 1 } })),
        value: async (resource) => totalOf(await guard.latest(resource)),
      },
      () => {},
    )
    expect(value).toBe(acknowledged)
  }, 240_000)
})
