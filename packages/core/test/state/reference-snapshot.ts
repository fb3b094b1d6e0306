import { writeLimits } from '../../src/codec/commands.js'
import { writeList } from '../../src/codec/fields.js'
import { Writer } from '../../src/index.js'
import type { LockState } from '../../src/index.js'
import {
  SnapshotIds,
  writeAnswers,
  writeDelay,
  writeHold,
  writeRegister,
  writeSemaphore,
  writeSession,
  writeWaiter,
} from '../../src/state/snapshot-format.js'

/** A snapshot in one go: each kind sorted by its key, after the head. */
export function referenceSnapshot({ machine }: LockState): Uint8Array {
  const writer = new Writer()
  const { epoch, index, now, counter, arrivals, level } = machine
  const format = level === 1 ? 1 : 2
  writer.u8(format)
  const ids = new SnapshotIds(format, counter)
  for (const field of [epoch, index, now, counter, arrivals, level]) writer.varuint(field)
  writeLimits(writer, machine.limits)
  const sessions = sorted(machine.sessions.values(), (session) => session.id)
  const semaphores = [...machine.locks.values()].filter((lock) => lock.permits > 0)
  writeList(
    writer,
    sorted(semaphores, (lock) => lock.name),
    writeSemaphore,
  )
  writeList(writer, sessions, (w, session) => writeSession(w, session, ids))
  writeList(
    writer,
    sorted(machine.holds.values(), (hold) => hold.id),
    (w, hold) => writeHold(w, hold, ids),
  )
  writeList(
    writer,
    sorted(machine.waiters.values(), (waiter) => waiter.arrival),
    writeWaiter,
  )
  writeList(
    writer,
    sorted(machine.delays.values(), (delay) => delay.dueId),
    (w, delay) => writeDelay(w, delay, ids),
  )
  writeList(writer, sessions, (w, session) => writeAnswers(w, session, ids))
  writeList(
    writer,
    sorted(machine.registers.values(), (register) => register.key),
    writeRegister,
  )
  return writer.take()
}

function sorted<T, K extends number | string>(items: Iterable<T>, key: (item: T) => K): T[] {
  return [...items].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0))
}
