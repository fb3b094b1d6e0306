import { StaleTokenError, TOKEN_MAX, UnavailableError, UnknownOutcomeError } from '@leasehold/core'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { type CasGuard, type CasOptions, type CasStore, decodeEnvelope, encodeEnvelope, fence } from '../src/cas.js'
import { provesFencing } from '../src/testkit.js'
import { randomOf, turns } from '../src/testkit/turns.js'
import { type Fate, FATES, FaultyStore } from './support/faulty-store.js'
import { holdOf, holdOfLocks } from './support/holds.js'

const LOCK = 'billing/invoice-42'
const text = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes))
const platform = { pause: () => Promise.resolve() }

describe('the guard with compare-and-set', () => {
  let store: FaultyStore
  let guard: CasGuard
  beforeEach(() => {
    store = new FaultyStore()
    guard = fence(store, { platform })
  })
  const stored = (key = LOCK) => decodeEnvelope(store.objects.get(key)?.bytes as Uint8Array)

  it('raises the mark before it reads, in the same object, and rejects late writes', async () => {
    expect(await guard.read(holdOf(33n))).toBe(null)
    expect(stored()).toMatchObject({ mark: 33n, kind: 'lock', lock: LOCK, value: null })
    await guard.write(holdOf(33n), 'a')
    await guard.write(holdOf(33n), new TextEncoder().encode('b'))
    expect(text(await guard.read(holdOf(34n)))).toBe('b')
    const late = await guard.write(holdOf(33n), 'late').catch((e: unknown) => e)
    expect(late).toBeInstanceOf(StaleTokenError)
    expect(late).toMatchObject({ token: 33n, mark: 34n, resource: LOCK })
    expect(text(await guard.latest(LOCK))).toBe('b')
  })

  it('makes read and write one unit', async () => {
    await guard.with(holdOf(33n), async (object) => {
      expect(object.get()).toBe(null)
      await object.put('1')
      await object.put(`${text(object.get())}2`)
    })
    expect(store.writes).toBe(3)
    expect(text(await guard.latest(LOCK))).toBe('12')
    const unit = guard.with(holdOf(34n), async (object) => {
      await guard.open(holdOf(35n))
      await object.put('late')
    })
    await expect(unit).rejects.toThrow(StaleTokenError)
  })

  it('works if the store does not report the new version', async () => {
    store.tellsVersion = false
    await guard.with(holdOf(33n), async (object) => {
      await object.put('1')
      await object.put(`${text(object.get())}2`)
    })
    expect(text(await guard.latest(LOCK))).toBe('12')
  })

  it('keeps the mark when the value is deleted', async () => {
    await guard.write(holdOf(33n), 'a')
    await guard.delete(holdOf(34n))
    expect(await guard.latest(LOCK)).toBe(null)
    expect(stored()).toMatchObject({ mark: 34n, value: null })
    await expect(guard.write(holdOf(33n), 'late')).rejects.toThrow(StaleTokenError)
    await guard.write(holdOf(34n), '')
    expect(text(await guard.latest(LOCK))).toBe('')
  })

  it('rejects overlapping writes of one hold', async () => {
    const hold = holdOf(33n)
    const unit = guard.with(hold, async (object) => {
      await guard.write(hold, 'by the other task')
      await object.put('over it')
    })
    await expect(unit).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/twice concurrently/),
    })
    expect(text(await guard.latest(LOCK))).toBe('by the other task')
  })

  it('keeps a mark per permit, and rejects the other kind and another lock', async () => {
    const gpu = (token: bigint, slot: number) => holdOf(token, 'gpu', { permits: 2 }, slot)
    await guard.write(gpu(33n, 0), 'zero')
    await guard.write(gpu(34n, 1), 'one')
    expect(text(await guard.read(gpu(33n, 0)))).toBe('zero')
    await guard.open(gpu(35n, 0))
    await expect(guard.open(gpu(33n, 0))).rejects.toThrow(StaleTokenError)
    await expect(guard.open(holdOf(36n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
    await guard.open(holdOf(36n, 'plain'))
    await expect(guard.open(holdOf(37n, 'plain', { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    const one = fence(store, { resource: () => 'one' })
    await one.open(holdOf(33n, 'lock a'))
    await expect(one.open(holdOf(34n, 'lock b'))).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/lock a/),
    })
  })

  it('lets shared holds only read, and requires a choice among several locks', async () => {
    const both = holdOfLocks([
      { name: 'a', mode: 'shared', token: 31n },
      { name: 'b', mode: 'exclusive', token: 35n },
    ])
    await expect(guard.read(both)).rejects.toMatchObject({ code: 'invalid', hint: expect.stringMatching(/lock/) })
    expect(await guard.read(both, { lock: 'a' })).toBe(null)
    await expect(guard.write(both, 'x', { lock: 'a' })).rejects.toMatchObject({ code: 'mismatch' })
    const unit = guard.with(both, { lock: 'a' }, (object) => object.put('x'))
    await expect(unit).rejects.toMatchObject({ code: 'mismatch' })
    await guard.write(both, 'x', { lock: 'b' })
  })

  it('adopts an unguarded object only with adoptPlain', async () => {
    store.objects.set(LOCK, { bytes: new TextEncoder().encode('plain'), version: 0 })
    await expect(guard.open(holdOf(33n))).rejects.toMatchObject({
      code: 'mismatch',
      hint: expect.stringMatching(/adoptPlain/),
    })
    await expect(guard.latest(LOCK)).rejects.toMatchObject({ code: 'mismatch' })
    const adopting = fence(store, { adoptPlain: true })
    expect(text(await adopting.latest(LOCK))).toBe('plain')
    expect(text(await adopting.read(holdOf(33n)))).toBe('plain')
    expect(stored()).toMatchObject({ mark: 33n, lock: LOCK })
  })

  it.each([33, -1n, 0n, 2n ** 63n, '33x', null])('rejects the token %s', async (token) => {
    await expect(guard.open(holdOf(token as never))).rejects.toMatchObject({ code: 'invalid' })
    expect(store.objects.size).toBe(0)
  })

  it('rejects invalid values, holds and stores, and a hold that has ended', async () => {
    await expect(guard.write(holdOf(33n), 7 as never)).rejects.toMatchObject({ code: 'invalid' })
    await expect(guard.open({} as never)).rejects.toMatchObject({ code: 'invalid' })
    expect(() => fence({} as never)).toThrow(/read\(key\)/)
    await expect(fence(store, { attempts: 0 }).open(holdOf(33n))).rejects.toMatchObject({ code: 'invalid' })
    const lost = holdOf(34n)
    lost.lose()
    await expect(guard.write(lost, 'x')).rejects.toMatchObject({ code: 'lost' })
    expect(store.writes).toBe(0)
  })

  it('checks the hold again before each attempt', async () => {
    const hold = holdOf(34n)
    store.fate = () => {
      hold.lose()
      return 'lost before'
    }
    await expect(guard.open(hold)).rejects.toMatchObject({ code: 'unknown-outcome' })
    expect(store.writes).toBe(1)
  })
})

describe('lost answers', () => {
  const attemptOf = async (fates: Fate[], then: (guard: CasGuard, store: FaultyStore) => Promise<unknown>) => {
    const store = new FaultyStore()
    const guard = fence(store, { platform, attempts: 3 })
    await guard.write(holdOf(33n), 'before')
    store.fate = () => fates.shift() ?? 'fine'
    const outcome = await then(guard, store).catch((e: unknown) => e)
    store.fate = () => 'fine'
    while (store.underway.length > 0) store.arrive()
    return { outcome, value: text(await guard.latest(LOCK)), writes: store.writes - 1 }
  }
  const write = (guard: CasGuard) => guard.write(holdOf(33n), 'after')

  it('recognizes its own write after it has taken effect', async () => {
    expect(await attemptOf(['lost after'], write)).toEqual({ outcome: undefined, value: 'after', writes: 1 })
  })

  it('retries a write that has not taken effect, and tolerates its late arrival', async () => {
    for (const fate of ['lost before', 'arrives late'] as const) {
      expect(await attemptOf([fate], write)).toEqual({ outcome: undefined, value: 'after', writes: 2 })
    }
  })

  it('reports that nothing was written if nothing was sent', async () => {
    const { outcome, value } = await attemptOf(['unsent'], write)
    expect(outcome).toBeInstanceOf(UnavailableError)
    expect(value).toBe('before')
  })

  it('reports an unknown outcome', async () => {
    const lost: Fate[] = ['lost before', 'arrives late', 'lost before']
    const { outcome, value } = await attemptOf([...lost], write)
    expect(outcome).toBeInstanceOf(UnknownOutcomeError)
    expect(value).toBe('after')
    expect((await attemptOf(['lost before', 'unsent'], write)).outcome).toBeInstanceOf(UnknownOutcomeError)
    const blind = await attemptOf(['lost after'], (guard, store) => {
      let reads = 0
      store.readFails = () => ++reads === 2
      return write(guard)
    })
    expect(blind.outcome).toBeInstanceOf(UnknownOutcomeError)
  })

  it('does not report a write as stale after a later holder has built on it or overwritten it', async () => {
    const open = (later: (guard: CasGuard) => Promise<unknown>) =>
      attemptOf([], async (guard, store) => {
        let sent = 0
        store.fate = () => (++sent === 1 ? 'lost after' : 'fine')
        let reads = 0
        const readNow = store.read.bind(store)
        store.read = async (key) => {
          if (++reads === 2) await later(fence({ read: readNow, write: store.write.bind(store) }))
          return await readNow(key)
        }
        return await write(guard)
      })
    expect(await open((other) => other.open(holdOf(34n)))).toMatchObject({ outcome: undefined, value: 'after' })
    const overwritten = await open((other) => other.write(holdOf(34n), 'later'))
    expect(overwritten.outcome).toBeInstanceOf(UnknownOutcomeError)
    expect(overwritten.value).toBe('later')
  })

  it('reports an unknown outcome after a rejection that its own retry may have caused, if it cannot read', async () => {
    let isAway = false
    const objects = new Map<string, { bytes: Uint8Array; version: number }>()
    // A client that retries by itself: the first attempt is written, its answer lost, and the retry rejected.
    const store: CasStore<number> = {
      async read(key) {
        if (isAway) throw new Error('away')
        return objects.get(key) ?? null
      },
      async write(key, bytes) {
        const version = (objects.get(key)?.version ?? 0) + 1
        objects.set(key, { bytes, version })
        // The opening gets its answer.
        if (version === 1) return { version }
        isAway = true
        return false
      },
    }
    const writing = fence(store, { platform }).with(holdOf(33n), (object) => object.put('mine'))
    await expect(writing).rejects.toMatchObject({ code: 'unknown-outcome' })
    isAway = false
    expect(text(await fence(store).latest(LOCK))).toBe('mine')
  })

  it('reports unavailable if others are faster in every attempt', async () => {
    const store = new FaultyStore()
    store.write = async () => false
    const open = fence(store, { platform, attempts: 3 }).open(holdOf(33n))
    await expect(open).rejects.toMatchObject({ code: 'unreachable', message: expect.stringMatching(/3 attempts/) })
  })

  it('passes permanent failures on, and reports untyped read errors as unavailable', async () => {
    const store = new FaultyStore()
    store.readFails = () => true
    const guard = fence(store, { platform })
    await expect(guard.open(holdOf(33n))).rejects.toBeInstanceOf(UnavailableError)
  })
})

describe('any order of faults', () => {
  /** Units of many holds, some late, over a faulty store. Acknowledged units must be there; unknown ones may be. */
  async function run(seed: number, faults: number, options: CasOptions = {}) {
    const random = randomOf(seed)
    const store = new FaultyStore()
    store.tellsVersion = random() < 0.5
    store.fate = () => (random() < faults ? (FATES[Math.floor(random() * FATES.length)] as Fate) : 'fine')
    store.readFails = () => random() < faults / 4
    const guard = fence(store, { platform, attempts: 6, ...options })
    let acknowledged = 0
    let unknown = 0
    let unmarked = 0n
    const unit = async (token: bigint) => {
      await turns(Math.floor(random() * 15))
      try {
        await guard.with(holdOf(token), async (object) => {
          const seen = Number(text(object.get()))
          await turns(Math.floor(random() * 15))
          if (random() < 0.3) store.arrive()
          await object.put(String(seen + 1))
        })
        acknowledged++
      } catch (error) {
        if (error instanceof UnknownOutcomeError) unknown++
        else if (!(error instanceof StaleTokenError || error instanceof UnavailableError)) throw error
      }
    }
    for (let round = 0; round < 6; round++) {
      const first = BigInt(round * 4 + 1)
      await Promise.all([0n, 1n, 2n, 3n].map((i) => unit(first + i)))
      const { mark } =
        store.objects.size === 0 ? { mark: 0n } : decodeEnvelope(store.objects.get(LOCK)?.bytes as Uint8Array)
      expect(mark).toBeGreaterThanOrEqual(unmarked)
      unmarked = mark
    }
    while (store.underway.length > 0) store.arrive()
    const value = Number(
      text(await fence({ read: async (key) => store.objects.get(key) ?? null, write: store.write }).latest(LOCK)),
    )
    return { acknowledged, unknown, value }
  }

  it('loses no acknowledged unit', async () => {
    let units = 0
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 }), fc.constantFrom(0, 0.1, 0.4), async (seed, faults) => {
        const { acknowledged, unknown, value } = await run(seed, faults)
        expect(value).toBeGreaterThanOrEqual(acknowledged)
        expect(value).toBeLessThanOrEqual(acknowledged + unknown)
        if (faults === 0) expect(unknown).toBe(0)
        units += acknowledged
      }),
      { numRuns: 60 },
    )
    expect(units).toBeGreaterThan(100)
  })

  it('decodes every envelope that it encodes', () => {
    fc.assert(
      fc.property(
        fc.record({
          mark: fc.bigInt({ min: 0n, max: TOKEN_MAX }),
          kind: fc.constantFrom('lock' as const, 'slot' as const, 'permits' as const),
          lock: fc.string({ unit: 'grapheme' }),
          write: fc.string(),
          value: fc.option(fc.uint8Array()),
        }),
        (envelope) => {
          expect(decodeEnvelope(encodeEnvelope(envelope))).toEqual(envelope)
        },
      ),
    )
    for (const bad of [
      '',
      'leasehold-envelope/1 ',
      'leasehold-envelope/1 {}\n',
      'leasehold-envelope/1 {"mark":1}\n',
      'x\n',
    ]) {
      expect(() => decodeEnvelope(new TextEncoder().encode(bad))).toThrow(expect.objectContaining({ code: 'mismatch' }))
    }
  })

  it('passes the test kit', async () => {
    const guard = fence(new FaultyStore(), { platform })
    await provesFencing(
      {
        open: (hold) => guard.open(hold),
        read: async (hold) => Number(text(await guard.read(hold))),
        write: (hold, n) => guard.write(hold, String(n)),
        remove: (hold) => guard.delete(hold),
        restart: async () => {},
      },
      { log: () => {} },
    )
  })
})
