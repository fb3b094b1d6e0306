import { describe, expect, it } from 'vitest'
import {
  decodeEntry,
  encodeEntry,
  FLOOR_CLOCK_MAX_MS,
  FLOOR_CLOCK_MIN_MS,
  FLOOR_MAX,
  FLOOR_PER_MS,
  floorAt,
  LEVEL_MAX,
  LockState,
  type Millis,
  type Serial,
} from '../../src/index.js'
import { hex } from './script.js'

const FLOOR = floorAt(Date.UTC(2026, 11, 1)) as Serial
const NO_ACK = { lowest: 1, also: [] }

function apply(state: LockState, ...commands: readonly unknown[]) {
  const entry = { at: state.now, commands: commands as never }
  return state.apply(decodeEntry(encodeEntry(entry)), (state.index + 1) as never).results
}

const open = { kind: 'openSession', nonce: hex(1), secret: hex(2), ttlMs: 1000, client: '', local: false }

function acquire(session: number, request: number, name: string, more: object = {}) {
  const base = { kind: 'acquire', session, request, ack: NO_ACK, locks: [{ name, mode: 'exclusive' }], waitMs: 0 }
  return { ...base, lockDelayMs: 0, persistent: false, portable: false, data: new Uint8Array(0), ...more }
}

function opened(state: LockState): number {
  const [result] = apply(state, open)
  if (result?.kind !== 'opened') throw new Error(JSON.stringify(result))
  return result.session
}

describe('floorAt', () => {
  it('counts 128 values per millisecond since 2024', () => {
    expect(floorAt(Date.UTC(2026, 11, 1))).toBe((Date.UTC(2026, 11, 1) - Date.UTC(2024, 0, 1)) * 128)
    expect((floorAt(Date.UTC(2027, 0, 1) + 1) as number) - (floorAt(Date.UTC(2027, 0, 1)) as number)).toBe(FLOOR_PER_MS)
  })

  it('is a whole number for a clock with fractions', () => {
    expect(floorAt(Date.UTC(2027, 0, 1) + 0.7)).toBe(floorAt(Date.UTC(2027, 0, 1)))
  })

  it('is undefined for an implausible clock', () => {
    for (const wallMs of [
      0,
      -1,
      Number.NaN,
      Infinity,
      Date.UTC(2023, 11, 31),
      FLOOR_CLOCK_MIN_MS - 1,
      FLOOR_CLOCK_MAX_MS,
    ])
      expect(floorAt(wallMs)).toBeUndefined()
    expect(floorAt(FLOOR_CLOCK_MIN_MS)).toBeGreaterThan(0)
    expect(floorAt(FLOOR_CLOCK_MAX_MS - 1)).toBeLessThan(FLOOR_MAX)
  })
})

describe('a floor', () => {
  it('is what the ids of a new state start above', () => {
    const state = LockState.create({ epoch: 1, floor: FLOOR })
    expect(opened(state)).toBe(FLOOR + 1)
  })

  it('raises the counter of a state in use, and never lowers it', () => {
    const state = LockState.create({ epoch: 1 })
    const session = opened(state)
    const ids = [FLOOR, 5, FLOOR + 1].map(
      (floor, i) => apply(state, { kind: 'configure', floor }, acquire(session, i + 1, `l${i}`))[1],
    )
    const tokens = ids.map((result) => result?.kind === 'granted' && result.grant.locks[0]?.token)
    expect(tokens).toEqual([FLOOR + 1, FLOOR + 2, FLOOR + 3])
  })

  it('counts for the commands after it in the same entry', () => {
    const state = LockState.create({ epoch: 1 })
    const session = opened(state)
    const results = apply(
      state,
      acquire(session, 1, 'a'),
      { kind: 'configure', floor: FLOOR },
      acquire(session, 2, 'b'),
    )
    expect(results).toMatchObject([{ grant: { hold: 2 } }, { kind: 'configured' }, { grant: { hold: FLOOR + 1 } }])
  })

  it('is refused above its maximum, and changes nothing then', () => {
    const state = LockState.create({ epoch: 1 })
    const hash = state.hash()
    const { results } = state.apply({ at: 0 as Millis, commands: [] }, 1 as never)
    expect(results).toEqual([])
    const [refused] = apply(state, { kind: 'configure', floor: FLOOR_MAX + 1, limits: { holds: 1 } })
    expect(refused).toMatchObject({ kind: 'refused', code: 'invalid' })
    expect(state.limits.holds).not.toBe(1)
    expect(state.counter).toBe(0)
    expect(state.hash()).not.toBe(hash)
  })

  it('needs feature level 2, which the same command may set', () => {
    const state = LockState.create({ epoch: 1, level: 1 })
    expect(apply(state, { kind: 'configure', floor: FLOOR })).toMatchObject([{ kind: 'refused', code: 'invalid' }])
    expect(state.counter).toBe(0)
    expect(apply(state, { kind: 'configure', level: 2, floor: FLOOR })).toEqual([{ kind: 'configured' }])
    expect(state.counter).toBe(FLOOR)
  })
})

describe('a raised epoch', () => {
  const lasting = { persistent: true, secret: hex(3) }

  function used(level = LEVEL_MAX): LockState {
    const state = LockState.create({ epoch: 1, level })
    const session = opened(state)
    apply(state, acquire(session, 1, 'kept', lasting))
    apply(state, { kind: 'renew', session, ack: { lowest: 2, also: [] } })
    return state
  }

  it('of two copies of one state, at different times, gives no token twice', () => {
    const first = used().withEpoch(2, { floor: FLOOR })
    const second = used().withEpoch(2, { floor: (FLOOR + FLOOR_PER_MS) as Serial })
    expect(first.moved).toEqual([{ from: 2, to: FLOOR + 1 }])
    expect(second.moved).toEqual([{ from: 2, to: FLOOR + FLOOR_PER_MS + 1 }])
  })

  it('keeps the feature level unless another one is given', () => {
    expect(used(1).withEpoch(2).state.level).toBe(1)
    expect(used(1).withEpoch(2, { level: 2 }).state.level).toBe(2)
  })
})

describe('the snapshot of a state with large ids', () => {
  function filled(level: number): LockState {
    const state = LockState.create({ epoch: 1, level })
    if (level > 1) apply(state, { kind: 'configure', floor: FLOOR })
    const session = opened(state)
    for (let i = 1; i <= 300; i++) apply(state, acquire(session, i, `lock-${i}`))
    return state
  }

  it('has about the size of one with small ids', () => {
    const bytes = filled(2).snapshot().length
    expect(bytes).toBeLessThan(filled(1).snapshot().length * 1.15)
  })

  it('restores to the same state, at either level', () => {
    for (const level of [1, 2]) {
      const state = filled(level)
      const copy = LockState.restore(state.snapshot())
      expect(copy.hash()).toBe(state.hash())
      expect(copy.level).toBe(level)
      expect(copy.snapshot()).toEqual(state.snapshot())
    }
  })

  it('is written in the format that the level of the state asks for', () => {
    expect(filled(1).snapshot()[0]).toBe(1)
    expect(filled(2).snapshot()[0]).toBe(2)
  })
})
