import { describe, expect, it } from 'vitest'
import { LeaderClock } from '../../src/clock/leader-clock.js'

describe("leader's clock", () => {
  it('continues from the highest timestamp', () => {
    const clock = new LeaderClock(1000, 50, 100)
    expect(clock.stamp(130, 1000)).toBe(1080)
    expect(clock.stamp(130, 1000)).toBe(1080)
  })

  it('counts at most two ticks between two readings', () => {
    const clock = new LeaderClock(0, 0, 100)
    expect(clock.read(20_000)).toBe(200)
    expect(clock.read(20_050)).toBe(250)
    expect(clock.read(19_000)).toBe(250)
    expect(clock.read(20_060)).toBe(260)
  })

  it('runs ahead of the applied time by at most two seconds, and drops the rest', () => {
    const clock = new LeaderClock(0, 0, 1000)
    for (let ms = 0; ms <= 10_000; ms += 1000) expect(clock.stamp(ms, 0)).toBe(Math.min(ms, 2000))
    expect(clock.stamp(10_001, 5000)).toBe(2001)
  })

  it('never goes back, also when its first timestamp is far ahead of the applied time', () => {
    const clock = new LeaderClock(9000, 0, 100)
    expect(clock.stamp(50, 0)).toBe(9000)
    expect(clock.stamp(100, 9000)).toBe(9050)
  })
})
