import { BusyError, HoldLostError, InvalidError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Hold } from '../../src/index.js'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

const holds = () => service.member.state.machine.holds.size

describe('request', () => {
  it('waits for the body to settle and returns its value', async () => {
    const locks = service.client()
    let inside = 0
    const value = await service.during(
      locks.request('a', async (hold) => {
        await new Promise<void>((resolve) => service.platform.after(2_000, resolve))
        inside = holds()
        expect(hold.state).toBe('held')
        return 'done'
      }),
    )
    expect(value).toBe('done')
    expect(inside).toBe(1)
    expect(holds()).toBe(0)
  })

  it('the body threw: its error, and the lock is released', async () => {
    const locks = service.client()
    const error = new Error('mine')
    await expect(service.during(locks.request('a', () => Promise.reject(error)))).rejects.toBe(error)
    expect(holds()).toBe(0)
  })

  it('the body threw and the release failed: its error all the same', async () => {
    const locks = service.client()
    const work = locks.request('a', () => {
      service.network.blackHole = true
      throw new Error('mine')
    })
    await expect(service.during(work)).rejects.toThrow('mine')
  })

  it('the body threw and the hold was lost: its error', async () => {
    const locks = service.client()
    const work = locks.request('a', () => {
      service.platform.block(20_000)
      throw new Error('mine')
    })
    await expect(service.during(work)).rejects.toThrow('mine')
  })

  it('it returned, but the hold was lost: HoldLostError with the value in .result', async () => {
    const locks = service.client()
    const error = await service.during(
      locks
        .request('a', () => {
          service.platform.block(20_000)
          return 42
        })
        .catch((e: unknown) => e),
    )
    expect(error).toBeInstanceOf(HoldLostError)
    expect(error).toMatchObject({ result: 42, reason: 'deadline' })
  })

  it('it returned, and the release found the hold gone: HoldLostError with the value in .result', async () => {
    const locks = service.client()
    const thief = service.client({}, { network: service.line() })
    await service.during(locks.acquire('warm-up'))
    const error = await service.during(
      locks
        .request('a', async () => {
          service.network.holdBack = true
          await thief.steal('a', { reason: 'x' })
          setImmediate(() => service.network.flush())
          return 42
        })
        .catch((e: unknown) => e),
    )
    expect(error).toMatchObject({ code: 'lost', result: 42, reason: 'stolen' })
  })

  it('it returned and only the release failed: the value, plus a warning', async () => {
    const locks = service.client()
    const warnings: string[] = []
    locks.on('warning', (warning) => warnings.push(warning.kind))
    const work = locks.request('a', () => {
      service.network.blackHole = true
      return 42
    })
    expect(await service.during(work)).toBe(42)
    expect(warnings).toContain('release-failed')
  })

  it('a body that releases by itself is done', async () => {
    const locks = service.client()
    const work = locks.request('a', async (hold) => {
      await hold.release()
      return 1
    })
    expect(await service.during(work)).toBe(1)
  })

  it('ifAvailable gives the callback null instead of waiting', async () => {
    const locks = service.client()
    await service.during(locks.acquire('a'))
    const seen: (Hold | null)[] = []
    await service.during(locks.request('a', { ifAvailable: true }, (hold) => void seen.push(hold)))
    await service.during(locks.request('b', { ifAvailable: true }, (hold) => void seen.push(hold)))
    expect(seen[0]).toBeNull()
    expect(seen[1]?.name).toBe('b')
    await expect(service.during(locks.request('a', { wait: 0 }, () => 1))).rejects.toBeInstanceOf(BusyError)
  })

  it('needs a function', async () => {
    const locks = service.client()
    // @ts-expect-error: no body
    await expect(locks.request('a')).rejects.toBeInstanceOf(InvalidError)
    // @ts-expect-error: no body
    await expect(locks.request('a', { wait: 0 })).rejects.toBeInstanceOf(InvalidError)
    await expect(locks.request('a', { ifAvailable: true, wait: 5_000 }, () => 1)).rejects.toBeInstanceOf(InvalidError)
  })

  it('two tasks of one process contend like two processes', async () => {
    const locks = service.client()
    let inside = 0
    let most = 0
    const body = async () => {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setImmediate(resolve))
      inside--
    }
    await service.during(Promise.all(Array.from({ length: 20 }, () => locks.request('a', body))))
    expect(most).toBe(1)
  })

  it('await using releases the lock at the end of the block', async () => {
    const locks = service.client()
    const work = (async () => {
      await using hold = await locks.acquire('a')
      expect(hold.state).toBe('held')
      expect(holds()).toBe(1)
    })()
    await service.during(work)
    expect(holds()).toBe(0)
  })
})
