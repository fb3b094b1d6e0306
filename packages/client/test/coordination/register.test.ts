import { InvalidError, VersionConflictError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('register', () => {
  it('keeps JSON and bytes under versions that grow', async () => {
    const register = service.client().register('config/flags')
    expect(await service.during(register.get())).toBeNull()
    const first = await service.during(register.put({ dark: true }, { ifVersion: 0n }))
    expect((await service.during(register.get()))?.value).toEqual({ dark: true })
    const second = await service.during(register.put(new Uint8Array([1, 2]), { ifVersion: first.version }))
    expect(second.version).toBeGreaterThan(first.version)
    const entry = await service.during(register.get())
    expect(entry?.bytes).toEqual(new Uint8Array([1, 2]))
    expect(() => entry?.value).toThrow(InvalidError)
    await service.during(register.delete({ ifVersion: second.version }))
    expect(await service.during(register.get())).toBeNull()
  })

  it('a wrong version is VersionConflictError with the right one', async () => {
    const register = service.client().register('r')
    const { version } = await service.during(register.put(1))
    await expect(service.during(register.put(2, { ifVersion: 0n }))).rejects.toMatchObject({ version })
    await expect(service.during(register.put(2, { ifVersion: 99n }))).rejects.toBeInstanceOf(VersionConflictError)
  })

  it('a fenced put needs the hold', async () => {
    const locks = service.client()
    const register = locks.register('r')
    const hold = await service.during(locks.acquire('a'))
    await service.during(register.put(1, { fence: hold, ifVersion: 0n }))
    expect((await service.during(register.get()))?.lock).toBe('a')
    await expect(service.during(register.put(2))).rejects.toMatchObject({ code: 'mismatch' })
    await service.during(hold.release())
    await expect(service.during(register.put(2, { fence: hold }))).rejects.toMatchObject({ code: 'not-holder' })
    const other = await service.during(locks.acquire('a'))
    await service.during(register.put(3, { fence: other }))
  })

  it('refuses wrong arguments', async () => {
    const register = service.client().register('r')
    await expect(register.put(undefined)).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1n)).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1, { ifVersion: 1 as never })).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1, { fence: {} as never })).rejects.toBeInstanceOf(InvalidError)
    await expect(register.put(1, { version: 1n } as never)).rejects.toBeInstanceOf(InvalidError)
    expect(() => service.client().register('')).toThrow(InvalidError)
  })

  it('a put that cannot be sent is unreachable, and never takes effect later', async () => {
    const locks = service.client({ connectTimeout: '2s' })
    const register = locks.register('r')
    await service.during(register.put(1))
    service.network.down.add(service.url)
    service.network.cutAll()
    await service.platform.advance(10)
    await expect(service.during(register.put(2))).rejects.toMatchObject({ code: 'unreachable' })
    service.network.down.clear()
    await service.platform.advance(3_000)
    expect((await service.during(register.get()))?.value).toBe(1)
  })

  it('a put whose answer is lost is unknown-outcome', async () => {
    const locks = service.client({ connectTimeout: '2s' })
    const register = locks.register('r')
    await service.during(register.put(1))
    service.network.holdBack = true
    const put = service.during(register.put(2))
    await expect(put).rejects.toMatchObject({ code: 'unknown-outcome' })
    service.network.flush()
  })

  it('watch yields the value now and after every change', async () => {
    const locks = service.client()
    const register = locks.register('r')
    const seen: unknown[] = []
    const controller = new AbortController()
    const watching = (async () => {
      for await (const entry of register.watch({ signal: controller.signal })) seen.push(entry?.value ?? null)
    })()
    await service.platform.advance(50)
    await service.during(register.put(1))
    await service.platform.advance(50)
    await service.during(register.put(2))
    await service.platform.advance(50)
    await service.during(register.delete())
    await service.platform.advance(50)
    controller.abort()
    await service.during(watching)
    expect(seen).toEqual([null, 1, 2, null])
  })
})
