import { describe, expect, test } from 'vitest'
import { RateLimiter } from '../../src/security/rate-limiter.js'

describe('a budget', () => {
  test('is spent, refills with time, and is bounded', () => {
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

  test('is each client’s own, and renewals have another', () => {
    const budgets = new RateLimiter({ requestsPerSecond: 1, renewalsPerSecond: 1 }, () => 0)
    for (const client of ['a', 'b']) for (let i = 0; i < 2; i++) budgets.spend(client, 'request')
    expect(() => budgets.spend('a', 'request')).toThrow()
    budgets.spend('a', 'renewal')
  })

  test('that is not set is without end', () => {
    const budgets = new RateLimiter({ renewalsPerSecond: 1 }, () => 0)
    for (let i = 0; i < 1000; i++) budgets.spend('a', 'request')
  })
})
