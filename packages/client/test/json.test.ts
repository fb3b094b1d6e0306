import { HoldLostError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { TestService } from './support/service.js'
import { suite } from './support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown

describe('toJSON', () => {
  it('of a query answer has ids and tokens as text and data as base64', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a', { data: 'run' }))
    const view = await service.during(locks.query())
    const { id, session } = view.held[0] as { id: bigint; session: bigint }
    expect(plain(view)).toMatchObject({
      held: [{ id: `${id}`, session: `${session}`, data: btoa('run'), locks: [{ name: 'a', token: `${hold.token}` }] }],
      sessions: [{ id: `${session}` }],
      at: view.at,
    })
    expect(Object.keys(view)).not.toContain('toJSON')
  })

  it('of a register entry has the version as text, and the bytes if they are no JSON', async () => {
    const locks = service.client()
    const register = locks.register('r')
    const { version } = await service.during(register.put({ dark: true }))
    expect(plain(await service.during(register.get()))).toEqual({ version: `${version}`, value: { dark: true } })
    await service.during(register.put(new Uint8Array([255])))
    expect(plain(await service.during(register.get()))).toMatchObject({ bytes: '/w==' })
  })

  it('of an event has ids and versions as text', async () => {
    const locks = service.client()
    const { at } = await service.during(locks.query())
    const { version } = await service.during(locks.register('r').put(1))
    for await (const event of locks.watch({ from: at })) {
      if (event.kind !== 'put') continue
      expect(plain(event)).toEqual({ cursor: event.cursor, kind: 'put', key: 'r', version: `${version}` })
      break
    }
  })

  it('of an error has its code and reason', () => {
    expect(plain(new HoldLostError('stolen', 'gone'))).toMatchObject({
      code: 'lost',
      message: 'gone',
      reason: 'stolen',
    })
  })
})
