import type { GuardableHold } from '../../src/common/hold.js'
import { staleToken } from '../../src/common/resource.js'
import { type FencedResource, pausePoint } from '../../src/testkit.js'

/** One step of I/O to a store in another process. */
async function io(): Promise<void> {
  await pausePoint()
  await new Promise<void>((resolve) => setImmediate(resolve))
}

interface Stored {
  value: number
  mark: bigint
}

/** A store of value and mark, with one access at a time. The name of a fault describes the error. */
export function planted(fault: Fault | 'none'): FencedResource {
  const stored: Stored = { value: 0, mark: 0n }
  const beside = { mark: 0n }
  const token = (hold: GuardableHold) => hold.tokenOf(hold.names[0] as string)
  const refuse = (hold: GuardableHold) => staleToken('planted', token(hold), stored.mark)
  const passes = (hold: GuardableHold, mark: bigint) => {
    if (fault === 'no check') return true
    if (fault === '< for ≤') return mark < token(hold)
    if (fault === 'comparison as double') return Number(mark) <= Number(token(hold))
    if (fault === 'comparison as text') return String(mark) <= String(token(hold))
    return mark <= token(hold)
  }
  const raise = (hold: GuardableHold) => {
    if (!passes(hold, stored.mark)) throw refuse(hold)
    if (token(hold) > stored.mark) stored.mark = token(hold)
  }
  return {
    async open(hold) {
      await io()
      if (fault === 'mark not raised on open') return
      if (fault === 'mark in another store') {
        if (beside.mark > token(hold)) throw refuse(hold)
        beside.mark = token(hold)
        return
      }
      raise(hold)
    },
    async read(hold) {
      await io()
      if (fault !== 'mark not raised on open' && fault !== 'mark in another store') raise(hold)
      return stored.value
    },
    async write(hold, value) {
      await io()
      if (fault === 'mark in another store') {
        if (beside.mark > token(hold)) throw refuse(hold)
        beside.mark = token(hold)
        await io()
        stored.value = value
        return
      }
      if (fault === 'check outside the transaction' || fault === 'read-then-write in the application') {
        const { mark } = stored
        if (!passes(hold, mark)) throw refuse(hold)
        await io()
        stored.value = value
        if (fault === 'read-then-write in the application' || token(hold) > stored.mark) stored.mark = token(hold)
        return
      }
      raise(hold)
      stored.value = value
    },
    async remove() {
      await io()
      stored.value = 0
      if (fault === 'mark deleted with the row') stored.mark = 0n
    },
    async restart() {
      if (fault === 'mark in memory only') stored.mark = 0n
    },
  }
}

export const FAULTS = [
  'no check',
  'check outside the transaction',
  '< for ≤',
  'mark not raised on open',
  'mark deleted with the row',
  'comparison as double',
  'comparison as text',
  'mark in another store',
  'read-then-write in the application',
  'mark in memory only',
] as const
export type Fault = (typeof FAULTS)[number]
