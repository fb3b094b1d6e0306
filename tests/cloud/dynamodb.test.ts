import { DynamoDB, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import { StaleTokenError, UnknownOutcomeError } from '@leasehold/core'
import { type DynamoGuard, type DynamoOptions, fence } from '@leasehold/fence/dynamodb'
import { provesFencing } from '@leasehold/fence/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { holdOf, holdOfLocks } from '../../packages/fence/test/support/holds.js'
import { FakeDynamo } from './fakes/dynamodb.js'
import { storm } from './verify/storm.js'

const LOCK = 'billing/invoice-42'
const options: DynamoOptions = {
  table: 'table',
  key: (resource) => ({ id: { S: resource } }),
  platform: { pause: () => Promise.resolve() },
}
const total = (n: number) => ({
  UpdateExpression: 'SET #total = :n',
  ExpressionAttributeNames: { '#total': 'total' },
  ExpressionAttributeValues: { ':n': { N: String(n) } },
})
const numberOf = (item: { total?: { N?: string } } | null) => Number(item?.total?.N ?? 0)

describe('the guard of DynamoDB, with the SDK, against a fake', () => {
  const fake = new FakeDynamo()
  let config: DynamoDBClientConfig
  let dynamo: DynamoDB
  let guard: DynamoGuard
  beforeAll(async () => {
    config = {
      endpoint: await fake.start(),
      region: 'eu-central-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    }
    dynamo = new DynamoDB(config)
    guard = fence(dynamo, options)
  })
  afterAll(async () => {
    dynamo.destroy()
    await fake.stop()
  })
  beforeEach(() => {
    fake.items.clear()
    fake.faults.length = 0
    fake.requests.length = 0
    fake.table = 'table'
  })

  it('keeps data and mark in one item, and refuses what is late', async () => {
    await guard.with(holdOf(33n), async (invoice) => {
      expect(invoice.item).toBe(null)
      expect(await invoice.update(total(7))).toEqual({ id: { S: LOCK }, total: { N: '7' } })
      await invoice.update({ UpdateExpression: 'ADD total :n', ExpressionAttributeValues: { ':n': { N: '1' } } })
      await invoice.update({ UpdateExpression: 'REMOVE nothing' })
    })
    expect(fake.items.get(LOCK)).toMatchObject({ leasehold_token: { N: '33' }, leasehold_lock: { S: LOCK } })
    expect(numberOf(await guard.read(holdOf(34n)))).toBe(8)
    const late = await guard.update(holdOf(33n), total(9)).catch((e: unknown) => e)
    expect(late).toBeInstanceOf(StaleTokenError)
    expect(late).toMatchObject({ token: 33n, mark: 34n, resource: LOCK })
    expect(numberOf(await guard.latest(LOCK))).toBe(8)
  })

  it('compares tokens with all their digits', async () => {
    await guard.open(holdOf(9_007_199_254_740_993n))
    await expect(guard.open(holdOf(9_007_199_254_740_992n))).rejects.toThrow(StaleTokenError)
  })

  it('keeps the mark of what is deleted', async () => {
    await guard.with(holdOf(33n), (invoice) => invoice.put({ total: { N: '7' }, note: { S: 'x' } }))
    expect(await guard.latest(LOCK)).toEqual({ id: { S: LOCK }, total: { N: '7' }, note: { S: 'x' } })
    await guard.with(holdOf(34n), (invoice) => invoice.delete())
    expect(await guard.latest(LOCK)).toBe(null)
    await expect(guard.update(holdOf(33n), total(1))).rejects.toThrow(StaleTokenError)
    expect(await guard.read(holdOf(34n))).toBe(null)
  })

  it('writes several items in one transaction, or none', async () => {
    const other = (n: number) => ({ Update: { TableName: 'table', Key: { id: { S: 'other' } }, ...total(n) } })
    await guard.with(holdOf(33n), (invoice) => invoice.transact([other(1)]))
    expect(fake.items.get('other')).toMatchObject({ total: { N: '1' } })
    const late = guard.with(holdOf(33n), async (invoice) => {
      await guard.open(holdOf(34n))
      await invoice.transact([other(2)])
    })
    await expect(late).rejects.toThrow(StaleTokenError)
    fake.faults.push('throttled', 'transaction conflict', 'transaction conflict')
    await guard.with(holdOf(34n), (invoice) => invoice.transact([other(3)]))
    fake.faults.push('throttled', 'applied, then cut')
    await guard.with(holdOf(34n), async (invoice) => {
      await invoice.transact([other(4)])
      await invoice.update(total(4))
    })
    expect(fake.items.get('other')).toMatchObject({ total: { N: '4' } })
    const condition = { ...other(5).Update, ConditionExpression: 'attribute_not_exists(#total)' }
    const refused = guard.with(holdOf(34n), (invoice) => invoice.transact([{ Update: condition }]))
    await expect(refused).rejects.toMatchObject({ name: 'TransactionCanceledException' })
    await guard.with(holdOf(34n), async (invoice) => {
      await expect(invoice.transact([])).rejects.toMatchObject({ code: 'invalid' })
    })
  })

  it('does not apply a change twice when answers are lost and the SDK repeats', async () => {
    const plus = { UpdateExpression: 'ADD total :n', ExpressionAttributeValues: { ':n': { N: '1' } } }
    for (const [i, fault] of (['applied, then 500', 'applied, then cut', 'cut', 'throttled'] as const).entries()) {
      await guard.with(holdOf(33n), async (invoice) => {
        fake.faults.push(fault, 'throttled')
        await invoice.update(plus)
      })
      expect(numberOf(await guard.latest(LOCK)), fault).toBe(i + 1)
    }
  })

  it('says when it does not know, and when DynamoDB is not there', async () => {
    const once = new DynamoDB({ ...config, maxAttempts: 1 })
    const few = fence(once, { ...options, attempts: 2 })
    await few.with(holdOf(33n), async (invoice) => {
      fake.faults.push('cut', 'cut')
      await expect(invoice.update(total(1))).rejects.toBeInstanceOf(UnknownOutcomeError)
      fake.faults.push('throttled', 'throttled')
      await expect(invoice.update(total(1))).rejects.toMatchObject({ code: 'unreachable' })
      fake.faults.push('applied, then cut')
      const put = once.putItem.bind(once)
      once.putItem = (async (input: Parameters<typeof put>[0]) => {
        const error = await put(input).catch((e: unknown) => e)
        await guard.update(holdOf(34n), total(5))
        throw error
      }) as typeof once.putItem
      await expect(invoice.put({})).rejects.toBeInstanceOf(UnknownOutcomeError)
    })
    once.destroy()
    const nobody = new DynamoDB({ ...config, endpoint: 'http://127.0.0.1:1', maxAttempts: 1 })
    await expect(fence(nobody, { ...options, attempts: 1 }).open(holdOf(33n))).rejects.toMatchObject({
      code: 'unreachable',
    })
    nobody.destroy()
  })

  it('refuses two changes of one hold at the same time, and passes conditions of the user on', async () => {
    const hold = holdOf(33n)
    const unit = guard.with(hold, async (invoice) => {
      await guard.update(hold, total(1))
      await invoice.update(total(2))
    })
    await expect(unit).rejects.toMatchObject({ code: 'invalid', message: expect.stringMatching(/twice/) })
    const change = { ...total(3), ConditionExpression: '#total > :n' }
    await expect(guard.update(hold, change)).rejects.toMatchObject({ name: 'ConditionalCheckFailedException' })
    expect(numberOf(await guard.latest(LOCK))).toBe(1)
  })

  it('keeps a mark for each permit, lets shared holds read, and refuses the wrong lock and kind', async () => {
    const gpu = (token: bigint, slot: number) => holdOf(token, 'gpu', { permits: 2 }, slot)
    await guard.update(gpu(33n, 0), total(1))
    await guard.update(gpu(34n, 1), total(2))
    expect(numberOf(await guard.read(gpu(33n, 0)))).toBe(1)
    await guard.open(gpu(35n, 0))
    await expect(guard.open(gpu(33n, 0))).rejects.toThrow(StaleTokenError)
    await expect(guard.open(holdOf(36n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
    await guard.open(holdOf(36n, 'plain'))
    await expect(guard.open(holdOf(37n, 'plain', { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    const one = fence(dynamo, { ...options, resource: () => 'one' })
    await one.open(holdOf(33n, 'lock a'))
    await expect(one.open(holdOf(34n, 'lock b'))).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/lock a/),
    })
    const shared = holdOf(40n, 'plain', 'shared')
    expect(await guard.read(shared)).toBe(null)
    await expect(guard.update(shared, total(1))).rejects.toMatchObject({ code: 'mismatch' })
    const both = holdOfLocks(['a', 'b'].map((name) => ({ name, mode: 'exclusive' as const, token: 33n })))
    await expect(guard.open(both)).rejects.toMatchObject({ code: 'invalid' })
    await guard.open(both, { lock: 'a' })
  })

  it('refuses what is no token, what belongs to the guard, and what DynamoDB finds wrong', async () => {
    for (const token of [33, -1n, 2n ** 63n]) {
      await expect(guard.open(holdOf(token as never))).rejects.toMatchObject({ code: 'invalid' })
    }
    const steal = { UpdateExpression: 'SET #x = :n', ExpressionAttributeValues: { ':n': { N: '1' } } }
    const names = { '#x': 'leasehold_token' }
    await expect(guard.update(holdOf(33n), { ...steal, ExpressionAttributeNames: names })).rejects.toMatchObject({
      code: 'invalid',
    })
    await expect(guard.update(holdOf(33n), { UpdateExpression: 'REMOVE leasehold_token' })).rejects.toMatchObject({
      code: 'invalid',
    })
    await expect(
      guard.update(holdOf(33n), { ...total(1), ExpressionAttributeNames: { '#lh_x': 'x' } }),
    ).rejects.toMatchObject({ code: 'invalid' })
    const put = guard.with(holdOf(33n), (invoice) => invoice.put({ leasehold_token: { N: '1' } }))
    await expect(put).rejects.toMatchObject({ code: 'invalid' })
    const wrong = { UpdateExpression: 'SET total = :n', ExpressionAttributeValues: {} }
    await expect(guard.update(holdOf(33n), wrong)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/Validation/),
    })
    fake.table = 'another'
    await expect(guard.open(holdOf(33n))).rejects.toMatchObject({
      code: 'invalid',
      hint: expect.stringMatching(/table/),
    })
    expect(() => fence({} as never, options)).toThrow(/client-dynamodb/)
    const lost = holdOf(33n)
    lost.lose()
    await expect(guard.open(lost)).rejects.toMatchObject({ code: 'lost' })
  })

  it('is proved by the test kit, and loses nothing when many write at once', async () => {
    await provesFencing(
      {
        open: (hold) => guard.open(hold),
        read: async (hold) => numberOf(await guard.read(hold)),
        write: (hold, n) => guard.update(hold, total(n)),
        remove: (hold) => guard.with(hold, (invoice) => invoice.delete()),
      },
      { log: () => {} },
    )
    const { acknowledged, value } = await storm(
      150,
      {
        unit: (hold) => guard.with(hold, (invoice) => invoice.update(total(numberOf(invoice.item) + 1))),
        value: async (resource) => numberOf(await guard.latest(resource)),
      },
      () => {},
    )
    expect(value).toBe(acknowledged)
  }, 240_000)
})
