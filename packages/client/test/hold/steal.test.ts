import { InvalidError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('steal', () => {
  it('needs a name: without one it would be every hold of the client', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    await expect(locks.steal(undefined as never, { reason: 'typo' })).rejects.toBeInstanceOf(InvalidError)
    expect(hold.state).toBe('held')
  })

  it('needs a reason', async () => {
    const locks = service.client()
    await expect(locks.steal('a', { reason: '' })).rejects.toBeInstanceOf(InvalidError)
    // @ts-expect-error: no reason
    await expect(locks.steal('a')).rejects.toBeInstanceOf(InvalidError)
    expect(await service.during(locks.steal('a', { reason: 'x' }))).toEqual({ stolen: 0 })
  })
})
