import { InvalidError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { TestService } from './support/service.js'
import { suite } from './support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('status', () => {
  it('is reported as it changes', async () => {
    const locks = service.client()
    const seen: string[] = []
    const off = locks.on('status', (status) => seen.push(status.state))
    expect(locks.status).toEqual({ state: 'idle' })
    await service.during(locks.connect())
    expect(locks.status).toMatchObject({ state: 'connected', url: service.url, epoch: 1 })
    service.network.cutAll()
    await service.platform.advance(100)
    await service.during(locks.close())
    off()
    expect(seen).toEqual(['connecting', 'connected', 'connecting', 'connected', 'closed'])
    // @ts-expect-error: no such event
    expect(() => locks.on('error', () => {})).toThrow(InvalidError)
  })
})
