import { expect, it } from 'vitest'
import { TestService } from './support/service.js'

it('acquires, releases and closes', async () => {
  const service = new TestService()
  const locks = service.client()
  const hold = await service.during(locks.acquire('a'))
  expect(hold.state).toBe('held')
  expect(hold.token).toBeGreaterThan(0n)
  expect(await service.during(hold.release())).toEqual({ released: true })
  expect(await service.during(locks.request('b', () => 7))).toBe(7)
  expect(await service.end()).toEqual({ timers: 0, connections: 0, sessions: 0 })
})
