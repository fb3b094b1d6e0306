import { describe, expect, test } from 'vitest'
import { serve } from '../support/harness.js'
import { bearer, useKeyFile } from '../support/keys.js'
import { RateLimiter } from '../../src/security/rate-limiter.js'

const keys = useKeyFile()

describe('RateLimiter', () => {
  test('rejects requests over the budget, which refills over time up to a burst', () => {
    let now = 0
    const budgets = new RateLimiter({ requestsPerSecond: 10 }, () => now)
    const spend = (times: number) => {
      for (let i = 0; i < times; i++) budgets.spend('a', 'request')
    }
    spend(20)
    expect(() => spend(1)).toThrow('more than 10 requests per second')
    now += 500
    spend(5)
    expect(() => spend(1)).toThrow()
    now += 1_000_000
    spend(20)
    expect(() => spend(1)).toThrow()
  })

  test('has separate budgets per client, and for renewals', () => {
    const budgets = new RateLimiter({ requestsPerSecond: 1, renewalsPerSecond: 1 }, () => 0)
    for (const client of ['a', 'b']) for (let i = 0; i < 2; i++) budgets.spend(client, 'request')
    expect(() => budgets.spend('a', 'request')).toThrow()
    budgets.spend('a', 'renewal')
  })

  test('has no limit by default', () => {
    const budgets = new RateLimiter({ renewalsPerSecond: 1 }, () => 0)
    for (let i = 0; i < 1000; i++) budgets.spend('a', 'request')
  })

  test('limits requests over HTTP, but not renewals and releases', async () => {
    const { text } = keys.create('*:acquire,read')
    const harness = await serve({ keys: keys.file, clientLimits: { requestsPerSecond: 2 } })
    const ask = (method: string, path: string, body?: unknown) => harness.call(method, path, body, bearer(text))
    const { body } = await ask('POST', '/v1/acquire', { name: 'a' })
    const codes: number[] = []
    // The budget refills by two requests per second, so this many requests exceed it on any machine.
    for (let i = 0; i < 200 && !codes.includes(429); i++) codes.push((await ask('GET', '/v1/locks')).status)
    expect(codes).toContain(429)
    expect((await ask('POST', '/v1/renew', { hold: body.hold })).status).toBe(200)
    expect((await ask('POST', '/v1/release', { hold: body.hold })).status).toBe(200)
  })
})
