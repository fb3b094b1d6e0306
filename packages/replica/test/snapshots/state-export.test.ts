import { LockState } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import type { ReplicaOptions } from '../../src/replica-options.js'
import type { ExportResult, StateExport } from '../../src/snapshots/state-export.js'
import { World } from '../support/world.js'

/** A member with some holds, and a function that exports its state. */
function memberOf(snapshotSliceBytes: number, options: Partial<ReplicaOptions> = {}) {
  const world = new World()
  const replica = world.open({ ...options, snapshotSliceBytes })
  const session = world.openSession(3_600_000)
  for (let i = 1; i <= 20; i++) world.acquire(session, i, `lock-${i}`)
  const answers: ExportResult[] = []
  const copy = (): void => replica.exportState((answer) => answers.push(answer))
  return { world, replica, session, answers, copy }
}

function stateOf(answer: ExportResult | undefined): LockState {
  const { pieces, bytes, hash, epoch, index } = answer as StateExport
  const whole = Buffer.concat(pieces)
  const state = LockState.restore(new Uint8Array(whole))
  expect([whole.length, state.hash(), state.epoch, state.index]).toEqual([bytes, hash, epoch, index])
  return state
}

describe('an export of the state', () => {
  it('has the state of the call or later, while commands are served', () => {
    const { world, session, answers, copy } = memberOf(1)
    copy()
    expect(answers).toEqual([])
    for (let i = 21; i <= 25; i++) world.acquire(session, i, `lock-${i}`)
    expect(answers, 'it takes longer than some commands').toEqual([])
    copy()
    world.until(() => answers.length === 2)
    expect(stateOf(answers[0]).machine.holds.size).toBe(20)
    expect(stateOf(answers[1]).machine.holds.size).toBe(25)
  })

  it('is never returned within the call', () => {
    const { world, answers, copy } = memberOf(1_000_000)
    copy()
    expect(answers).toEqual([])
    world.until(() => answers.length === 1)
    expect(stateOf(answers[0]).machine.holds.size).toBe(20)
  })

  it('runs along with own snapshots: each is complete', () => {
    const { world, session, answers, copy } = memberOf(1, { snapshotBytes: 4096 })
    const snapshots = () => world.disk.list().filter((name) => name.startsWith('snapshot-'))
    const before = snapshots()
    for (let i = 21; i <= 60; i++) {
      world.acquire(session, i, `lock-${i}`)
      if (i % 10 === 0) copy()
    }
    world.until(() => answers.length === 4 && snapshots().length > before.length)
    const counts = answers.map((answer) => stateOf(answer).machine.holds.size)
    expect(counts.every((count, at) => count >= 30 + 10 * at)).toBe(true)
  })

  it('is refused when the member stops before it is complete, and leaves nothing behind', () => {
    const { world, replica, answers, copy } = memberOf(1)
    copy()
    world.stop()
    expect(answers).toMatchObject([{ refused: { code: 'no-quorum' } }])
    expect(replica.stale().state.machine.hash.observer).toBeUndefined()
  })

  it('is refused by a member that has stopped', () => {
    const { world, answers, copy } = memberOf(1)
    world.stop()
    copy()
    world.until(() => answers.length === 1)
    expect(answers).toMatchObject([{ refused: { code: 'no-quorum' } }])
  })
})
