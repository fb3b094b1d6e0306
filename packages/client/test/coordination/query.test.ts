import { InvalidError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('query', () => {
  it('shows holders and waiters, with full ids and owner data', async () => {
    const locks = service.client({ clientName: 'me' })
    const hold = await service.during(locks.acquire('a/b', { data: 'hello' }))
    const waiting = locks.acquire('a/b').catch(() => {})
    await service.platform.advance(10)
    const view = await service.during(locks.query({ prefix: 'a' }))
    expect(view.held[0]).toMatchObject({ id: hold.id, client: 'me', locks: [{ name: 'a/b', token: hold.token }] })
    expect(new TextDecoder().decode(view.held[0]?.data)).toBe('hello')
    expect(view.pending).toHaveLength(1)
    expect((await service.during(locks.query({ prefix: 'a/' }))).held).toHaveLength(1)
    expect((await service.during(locks.query({ prefix: 'a/bb' }))).held).toHaveLength(0)
    await service.during(locks.close())
    await waiting
  })

  it('hides the namespace', async () => {
    const mine = service.client({ namespace: 'team-a' })
    const all = service.client()
    const hold = await service.during(mine.acquire('x'))
    expect(hold.name).toBe('x')
    expect(hold.tokenOf('x')).toBe(hold.token)
    expect((await service.during(mine.query())).held[0]?.locks[0]?.name).toBe('x')
    expect((await service.during(all.query())).held[0]?.locks[0]?.name).toBe('team-a/x')
    await service.during(all.acquire('x'))
    expect((await service.during(mine.query({ name: 'x' }))).held).toHaveLength(1)
  })

  it('rejects invalid queries, and keeps the connection', async () => {
    const locks = service.client()
    await expect(service.during(locks.query({ limit: 5_000 }))).rejects.toBeInstanceOf(InvalidError)
    await expect(service.during(locks.query({ cursor: 'x' }))).rejects.toBeInstanceOf(InvalidError)
    expect((await service.during(locks.query())).held).toEqual([])
    expect(service.network.connects).toHaveLength(1)
  })
})
