import { S3, type S3ClientConfig } from '@aws-sdk/client-s3'
import { StaleTokenError, UnknownOutcomeError } from '@leasehold/core'
import { checkCasStore, decodeEnvelope } from '@leasehold/fence/cas'
import { bucketPolicy, fence, s3Store } from '@leasehold/fence/s3'
import { provesFencing } from '@leasehold/fence/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { holdOf } from '../../packages/fence/test/support/holds.js'
import { FakeS3 } from './fakes/s3.js'
import { storm } from './verify/storm.js'

const LOCK = 'billing/invoice-42'
const KEY = `state/${LOCK}`
const options = { bucket: 'bucket', prefix: 'state/', platform: { pause: () => Promise.resolve() } }
const text = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes))

describe('the guard of S3, with the SDK, against a fake', () => {
  const fake = new FakeS3()
  let config: S3ClientConfig
  let s3: S3
  beforeAll(async () => {
    config = {
      endpoint: await fake.start(),
      forcePathStyle: true,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    }
    s3 = new S3(config)
  })
  afterAll(async () => {
    s3.destroy()
    await fake.stop()
  })
  beforeEach(() => {
    fake.objects.clear()
    fake.requests.length = 0
    fake.faults.length = 0
    fake.ignoresConditions = false
    fake.refusesUnconditional = true
    fake.bucket = 'bucket'
  })
  const stored = () => decodeEnvelope(fake.objects.get(KEY)?.body as Buffer)

  it('keeps value and mark in one body, and writes only on conditions', async () => {
    const guard = fence(s3, options)
    await guard.with(holdOf(33n), async (object) => {
      expect(object.get()).toBe(null)
      await object.put('total 7')
    })
    expect(fake.requests).toEqual([`GET ${KEY}`, `PUT ${KEY}`, `PUT ${KEY}`])
    expect(stored()).toMatchObject({ mark: 33n, lock: LOCK })
    expect(text(await guard.read(holdOf(34n)))).toBe('total 7')
    await expect(guard.write(holdOf(33n), 'late')).rejects.toThrow(StaleTokenError)
    await guard.delete(holdOf(34n))
    expect(await guard.latest(LOCK)).toBe(null)
    await expect(guard.write(holdOf(33n), 'late')).rejects.toThrow(StaleTokenError)
  })

  it('gives two writes of the same value different ETags, so that no version comes back', async () => {
    const guard = fence(s3, options)
    const etags = new Set<string>()
    for (const token of [33n, 33n, 34n]) {
      await guard.write(holdOf(token), 'same')
      etags.add(fake.objects.get(KEY)?.etag as string)
    }
    expect(etags.size).toBe(3)
  })

  it('reads again after 409, and after a deletion around the guard', async () => {
    const guard = fence(s3, options)
    fake.faults.push('conflict 409', 'conflict 409')
    await guard.write(holdOf(33n), 'a')
    expect(text(await guard.latest(LOCK))).toBe('a')
    fake.faults.push('deleted meanwhile')
    await guard.write(holdOf(34n), 'b')
    expect(text(await guard.latest(LOCK))).toBe('b')
  })

  it('knows its own write when the SDK has repeated it and the repetition is refused', async () => {
    const guard = fence(s3, options)
    for (const fault of ['applied, then 500', 'applied, then cut'] as const) {
      fake.faults.push(fault)
      await guard.write(holdOf(33n), fault)
      expect(text(await guard.latest(LOCK))).toBe(fault)
    }
    expect(fake.requests.filter((request) => request.startsWith('PUT'))).toHaveLength(4)
  })

  it('does not call it stale when a repeated write was overwritten by the next holder', async () => {
    const guard = fence(s3, options)
    await guard.open(holdOf(33n))
    const put = s3.putObject.bind(s3)
    const late = new Proxy(s3, {
      get(target, property) {
        if (property !== 'putObject') return Reflect.get(target, property, target) as unknown
        return async (input: Parameters<S3['putObject']>[0]) => {
          const answer = put(input).catch((e: unknown) => e)
          const error = await answer
          await fence(s3, options).write(holdOf(34n), 'later')
          throw error
        }
      },
    })
    fake.faults.push('applied, then 500')
    await expect(fence(late, options).write(holdOf(33n), 'x')).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(text(await guard.latest(LOCK))).toBe('later')
  })

  it('reports permanent errors, each with its type', async () => {
    fake.bucket = 'another'
    await expect(fence(s3, options).open(holdOf(33n))).rejects.toMatchObject({
      code: 'invalid',
      hint: expect.stringMatching(/bucket/),
    })
    fake.bucket = 'bucket'
    const put = (await import('@aws-sdk/client-s3')).PutObjectCommand
    await expect(s3.send(new put({ Bucket: 'bucket', Key: KEY, Body: 'around' }))).rejects.toMatchObject({
      name: 'AccessDenied',
    })
    const unconditional = {
      getObject: s3.getObject.bind(s3),
      putObject: ({ IfMatch: _a, IfNoneMatch: _b, ...rest }) => s3.putObject(rest),
    } as typeof s3
    await expect(fence(unconditional, options).open(holdOf(33n))).rejects.toMatchObject({ code: 'forbidden' })
    expect(() => fence(s3, {} as never)).toThrow(/bucket/)
    expect(() => fence({} as never, options)).toThrow(/client-s3/)
  })

  it('says when S3 is not there, and when it does not know whether it has written', async () => {
    const once = new S3({ ...config, maxAttempts: 1 })
    const guard = fence(once, { ...options, attempts: 2 })
    await guard.open(holdOf(33n))
    fake.faults.push('cut', 'cut')
    await expect(guard.write(holdOf(33n), 'x')).rejects.toBeInstanceOf(UnknownOutcomeError)
    once.destroy()
    const nobody = new S3({ ...config, endpoint: 'http://127.0.0.1:1', maxAttempts: 1 })
    await expect(fence(nobody, options).open(holdOf(33n))).rejects.toMatchObject({ code: 'unreachable' })
    nobody.destroy()
  })

  it('finds out stores that ignore conditions', async () => {
    await checkCasStore(s3Store(s3, options), 'probe-1')
    fake.ignoresConditions = true
    await expect(checkCasStore(s3Store(s3, options), 'probe-2')).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/second creation/),
    })
  })

  it('prints the policy of the bucket', () => {
    const policy = JSON.parse(bucketPolicy({ bucket: 'invoices', prefix: 'state/' }))
    expect(policy.Statement[0]).toMatchObject({
      Effect: 'Deny',
      Action: 's3:PutObject',
      Resource: 'arn:aws:s3:::invoices/state/*',
      Condition: { Null: { 's3:if-match': 'true', 's3:if-none-match': 'true' } },
    })
    expect(() => bucketPolicy({ bucket: 'a b' })).toThrow()
    expect(() => bucketPolicy({ bucket: 'invoices', prefix: 'a*' })).toThrow()
  })

  it('is proved by the test kit, and loses nothing when many write at once', async () => {
    const guard = fence(s3, { ...options, attempts: 50 })
    const numberOf = (bytes: Uint8Array | null) => Number(text(bytes))
    await provesFencing(
      {
        open: (hold) => guard.open(hold),
        read: async (hold) => numberOf(await guard.read(hold)),
        write: (hold, n) => guard.write(hold, String(n)),
        remove: (hold) => guard.delete(hold),
      },
      { log: () => {} },
    )
    const target = {
      unit: (hold: Parameters<typeof guard.open>[0]) =>
        guard.with(hold, (object) => object.put(String(numberOf(object.get()) + 1))),
      value: async (resource: string) => numberOf(await guard.latest(resource)),
    }
    const { acknowledged, value } = await storm(150, target, () => {})
    expect(value).toBe(acknowledged)
    expect(acknowledged).toBeGreaterThan(10)
    fake.ignoresConditions = true
    await expect(storm(150, target, () => {})).rejects.toThrow(/lost/)
  }, 240_000)
})
