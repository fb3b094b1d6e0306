import type { HoldId, Serial } from '../brand.js'
import { EPOCH_MAX } from '../tokens.js'
import { assert } from '../assert.js'
import { addHold } from './hold-table.js'
import { Machine } from './machine.js'
import type { Hold } from './elements.js'

export interface RaiseOptions {
  /** The new counter starts above it, so that two copies of a state do not grant the same tokens; default 0. */
  readonly floor?: Serial | undefined
  /** Feature level of the new state; default that of the old one. */
  readonly level?: number | undefined
}

/** Copies the state of `old` into a later epoch with a new counter. `old` is not changed. */
export function raiseEpoch(
  old: Machine,
  epoch: number,
  { floor, level }: RaiseOptions = {},
): { machine: Machine; moved: { from: HoldId; to: HoldId }[] } {
  assert(Number.isSafeInteger(epoch) && epoch <= EPOCH_MAX, `an epoch is at most ${EPOCH_MAX}, not ${epoch}`)
  assert(epoch > old.epoch, `the epoch only grows: ${epoch} after ${old.epoch}`)
  const machine = new Machine(epoch, old.limits)
  machine.index = old.index
  machine.now = old.now
  machine.level = level ?? old.level
  if (floor !== undefined) machine.raiseCounter(floor)
  for (const register of old.registers.values()) {
    const copy = { ...register }
    machine.registers.set(copy.key, copy)
    machine.hashRegister(copy).endUpdate()
  }
  const generations = new Map<string, Serial>()
  const moved: { from: HoldId; to: HoldId }[] = []
  for (const hold of old.holds.values()) {
    if (!hold.terms.confirmed) continue
    const id = machine.draw()
    const held = hold.held.map((one) => {
      if (one.mode !== 'shared') return { ...one, token: id }
      const token = generations.get(one.name) ?? id
      generations.set(one.name, token)
      return { ...one, token }
    })
    const places = held.map(({ name }) => machine.ensureLock(name, old.requireLock(name).permits))
    const copy: Hold = { ...hold, id, held, session: undefined, answer: undefined, grantChange: 0 }
    addHold(machine, copy, places)
    moved.push({ from: hold.id, to: id })
  }
  return { machine, moved }
}
