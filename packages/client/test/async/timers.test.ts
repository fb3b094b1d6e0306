import { describe, expect, it, vi } from 'vitest'
import { Elapsed } from '../../src/lease/elapsed.js'
import { defaultPlatform } from '../../src/platform.js'
import { bounded } from '../../src/async/bounded-wait.js'
import { after } from '../../src/async/timers.js'
import { TestPlatform } from '../support/platform.js'

describe('timers', () => {
  it('longer than 2^31-1 ms are chained', async () => {
    const platform = new TestPlatform()
    let fired = 0
    after(platform, 2 ** 31 + 5_000, () => fired++)
    await platform.advance(2 ** 31 - 1)
    expect(fired).toBe(0)
    await platform.advance(5_000)
    expect(fired).toBe(0)
    await platform.advance(1)
    expect(fired).toBe(1)
    expect(platform.timers).toBe(0)
  })

  it('can be cancelled in every link of the chain', async () => {
    const platform = new TestPlatform()
    const cancel = after(platform, 2 ** 33, () => expect.unreachable())
    await platform.advance(2 ** 32)
    cancel()
    expect(platform.timers).toBe(0)
  })

  it('of Infinity never fire and cost nothing', () => {
    const platform = new TestPlatform()
    after(platform, Number.POSITIVE_INFINITY, () => expect.unreachable())
    expect(platform.timers).toBe(0)
  })

  it('are those from before a test framework replaced them', async () => {
    vi.useFakeTimers()
    try {
      const before = defaultPlatform.monotonicMs()
      const wallBefore = defaultPlatform.wallMs()
      await new Promise<void>((resolve) => {
        defaultPlatform.after(20, resolve)
      })
      expect(defaultPlatform.monotonicMs() - before).toBeGreaterThanOrEqual(15)
      expect(defaultPlatform.wallMs() - wallBefore).toBeGreaterThanOrEqual(15)
    } finally {
      vi.useRealTimers()
    }
  })

  it('do not keep a process alive unless a caller waits', () => {
    const check = (keepAlive: boolean) => {
      const cancel = defaultPlatform.after(1_000_000, () => {}, keepAlive)
      const active = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
      cancel()
      return active
    }
    expect(check(true) - check(false)).toBe(1)
  })
})

describe('bounded', () => {
  it('leaves no timer and no listener', async () => {
    const platform = new TestPlatform()
    const controller = new AbortController()
    const added = vi.spyOn(controller.signal, 'addEventListener')
    const removed = vi.spyOn(controller.signal, 'removeEventListener')
    const bounds = { what: 'it', signal: controller.signal, timeoutMs: 1_000 }
    expect(await bounded(platform, Promise.resolve(1), bounds)).toBe(1)
    await expect(bounded(platform, Promise.reject(new Error('x')), bounds)).rejects.toThrow('x')
    const late = bounded(platform, new Promise(() => {}), bounds)
    const outcome = late.catch((error: unknown) => error)
    await platform.advance(1_000)
    expect(await outcome).toBeInstanceOf(Error)
    expect(platform.timers).toBe(0)
    expect(removed.mock.calls.length).toBe(added.mock.calls.length)
  })
})

describe('elapsed time', () => {
  it('is the larger of the two differences, and never goes back', () => {
    const platform = new TestPlatform()
    const elapsed = new Elapsed(platform)
    platform.mono += 1_000
    platform.wall += 1_000
    expect(elapsed.now()).toBe(1_000)
    platform.wall += 500
    expect(elapsed.now()).toBe(1_500)
    platform.mono += 2_000
    expect(elapsed.now()).toBe(3_500)
    platform.wall -= 1_000_000
    expect(elapsed.now()).toBe(3_500)
    platform.mono += 10
    platform.wall += 10
    expect(elapsed.now()).toBe(3_510)
    platform.mono -= 50
    platform.wall -= 50
    expect(elapsed.now()).toBe(3_510)
  })

  it('can be read without a sample', () => {
    const now = { monotonic: 0, wall: 0 }
    const platform = { ...defaultPlatform, monotonicMs: () => now.monotonic, wallMs: () => now.wall }
    const [seen, unseen] = [new Elapsed(platform), new Elapsed(platform)]
    for (const [monotonic, wall] of [
      [60, 70],
      [130, 120],
      [150, 9000],
      [200, 30],
    ] as const) {
      Object.assign(now, { monotonic, wall })
      seen.peek()
    }
    expect(seen.peek()).toBe(200)
    expect(seen.now()).toBe(unseen.now())
  })

  it('is never behind the monotonic clock, however often it is read', () => {
    const platform = new TestPlatform()
    const elapsed = new Elapsed(platform)
    const start = platform.mono
    for (let i = 0; i < 10_000; i++) {
      platform.mono += platform.random() * 3
      platform.wall += Math.round(platform.random() * 3)
      if (i % 500 === 0) platform.wall -= 5_000
      expect(elapsed.now()).toBeGreaterThanOrEqual(platform.mono - start - 1e-6)
    }
  })
})
