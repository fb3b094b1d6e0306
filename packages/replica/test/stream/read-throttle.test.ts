import type { ServerMessage } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { ReadThrottle } from '../../src/stream/read-throttle.js'

const value = new Uint8Array(1000)
const register = { key: 'k', value, version: 1n, lock: undefined }
const answer = (correlation: number): ServerMessage => ({ kind: 'getAnswer', correlation, register })

/** Reads of 1 200 bytes each, with room for 5 000. */
function reads(backlog: { bytes: number } | undefined) {
  const answered: number[] = []
  const turns = new ReadThrottle(5_000, backlog && (() => backlog.bytes))
  const take = (correlation: number) => {
    turns.answerInTurn(correlation, () => {
      answered.push(correlation)
      turns.answered(answer(correlation))
    })
  }
  return { turns, take, answered }
}

describe('the reads of a stream', () => {
  it('are deferred when a turn has answered enough, and continue in order', () => {
    const { turns, take, answered } = reads({ bytes: 0 })
    for (let i = 0; i < 12; i++) take(i)
    expect(answered).toEqual([0, 1, 2, 3, 4])
    expect(turns.waiting).toBe(7)
    turns.resume()
    expect(answered.length).toBe(10)
    turns.resume()
    expect(answered).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  })

  it('wait for a client that does not receive its answers', () => {
    const backlog = { bytes: 6_000 }
    const { turns, take, answered } = reads(backlog)
    take(1)
    turns.resume()
    expect(answered).toEqual([])
    backlog.bytes = 0
    turns.resume()
    expect(answered).toEqual([1])
  })

  it('are never deferred without a backlog', () => {
    const { take, answered } = reads(undefined)
    for (let i = 0; i < 100; i++) take(i)
    expect(answered.length).toBe(100)
  })

  it('are not answered after they were dropped', () => {
    const { turns, take, answered } = reads({ bytes: 0 })
    for (let i = 0; i < 8; i++) take(i)
    turns.drop(6)
    turns.resume()
    expect(answered).toEqual([0, 1, 2, 3, 4, 5, 7])
  })

  it('count a query as work even when it returns nothing', () => {
    const turns = new ReadThrottle(100_000, () => 0)
    const at = { epoch: 1, index: 1, ordinal: 1 }
    let answers = 0
    for (let correlation = 0; correlation < 100; correlation++) {
      turns.answerInTurn(correlation, () => {
        answers++
        const rows = { held: [], pending: [], delays: [], sessions: [], next: undefined, at }
        turns.answered({ kind: 'queryAnswer', correlation, answer: rows as never })
      })
    }
    expect(answers).toBe(7)
  })
})
