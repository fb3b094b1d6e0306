import { describe, expect, it } from 'vitest'
import { settingsOf } from '../src/replica-options.js'
import { World } from './support/world.js'

describe('options', () => {
  const { platform } = new World()
  it.each([
    [{ name: '' }, /member's name/],
    [{ name: 'a b' }, /member's name/],
    [{ name: 'n1', tickMs: 0 }, /tickMs is 0/],
    [{ name: 'n1', segmentBytes: 1000 }, /segmentBytes is 1000; at least 262144/],
    [{ name: 'n1', electionTicks: 1.5 }, /electionTicks/],
  ])('%o are refused', (options, message) => {
    expect(() => settingsOf({ platform, ...options })).toThrow(message)
  })

  it('fall back to defaults when undefined', () => {
    expect(settingsOf({ platform, name: 'n1', tickMs: undefined as unknown as number }).tickMs).toBe(50)
  })
})
