import { beforeEach, describe, expect, it } from 'vitest'
import type { Leader } from '../../src/index.js'
import type { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('election', () => {
  it('has one leader at a time, and observers see it, or that there is none', async () => {
    const [one, two, watcher] = [service.client(), service.client(), service.client()]
    const controller = new AbortController()
    const seen: (Leader | null)[] = []
    const observing = (async () => {
      for await (const leader of watcher.election('boss').observe({ signal: controller.signal })) seen.push(leader)
    })()
    await service.platform.advance(50)
    let finish: () => void = () => {}
    const first = one
      .election('boss')
      .campaign({ value: 'one' }, () => new Promise<void>((resolve) => (finish = resolve)))
    await service.platform.advance(50)
    const electionTwo = two.election('boss')
    const second = electionTwo.campaign({ value: 'two' })
    await service.platform.advance(50)
    finish()
    await service.during(first)
    const leadership = await service.during(second)
    await service.platform.advance(50)
    expect(await service.during(watcher.election('boss').leader())).toMatchObject({
      value: 'two',
      token: leadership.token,
    })
    await service.during(electionTwo.resign())
    expect(leadership.state).toBe('released')
    await service.platform.advance(50)
    controller.abort()
    await service.during(observing)
    expect(seen.map((leader) => leader?.value ?? null)).toEqual([null, 'one', null, 'two', null])
  })

  it('a dead leader is followed by the next one', async () => {
    const [one, two] = [service.client({ ttl: '2s' }), service.client({}, { network: service.line() })]
    const leadership = await service.during(one.election('boss').campaign({ value: 'one' }))
    service.network.blackHole = true
    const next = await service.during(two.election('boss').campaign({ value: 'two' }))
    expect(leadership.state).toBe('lost')
    expect(next.token).toBeGreaterThan(leadership.token)
  })
})
