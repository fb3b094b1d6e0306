import { nameProblem } from '../names.js'
import type { Delete, Fence, Numbered, Put, Refused, Result } from '../operations.js'
import { tokenOf } from '../tokens.js'
import type { Machine } from './machine.js'
import { type Register, refused } from './elements.js'
import { deduplicate } from './deduplication.js'

type Write = Put | Delete

/**
 * Writes or deletes a register. Without a request number a repeat could have a second effect, unless the write has the condition
 * `ifVersion` > 0: versions never recur.
 */
export function writeRegister(machine: Machine, command: Write): Result {
  const { session, request, ack } = command
  if (session !== undefined && request !== undefined) {
    const numbered: Numbered = { session, request, ack: ack ?? { lowest: 1, also: [] } }
    return deduplicate(machine, numbered, 'half', () => writeNow(machine, command))
  }
  if (command.ifVersion === undefined || command.ifVersion === 0n) {
    return refused('invalid', 'a write without a session needs ifVersion > 0', 'open a session, and number the request')
  }
  return writeNow(machine, command)
}

function writeNow(machine: Machine, command: Write): Result {
  const problem = nameProblem(command.key)
  if (problem !== undefined) return refused('invalid', problem)
  const { key, ifVersion, fence } = command
  const register = machine.registers.get(key)
  if (command.kind === 'put' && command.value.length > machine.limits.registerBytes) {
    return refused('limit', `a register has at most ${machine.limits.registerBytes} bytes, not ${command.value.length}`)
  }
  const fenced = fenceProblem(machine, command, register, fence)
  if (fenced !== undefined) return fenced
  const version = register?.version ?? 0n
  if (ifVersion !== undefined && ifVersion !== version) {
    const text = version === 0n ? 'does not exist' : `has version ${version}`
    return { kind: 'refused', code: 'version-conflict', message: `register ${JSON.stringify(key)} ${text}`, version }
  }
  return command.kind === 'put' ? put(machine, command, register) : remove(machine, register)
}

/** Why the fence of a write is refused: it must be an exclusive hold of the register's lock that belongs to the writer. */
function fenceProblem(
  machine: Machine,
  command: Write,
  register: Register | undefined,
  fence: Fence | undefined,
): Refused | undefined {
  const lock = register?.lock
  const name = JSON.stringify(command.key)
  if (fence === undefined) {
    if (lock === undefined) return undefined
    return refused(
      'mismatch',
      `register ${name} is fenced by the lock ${JSON.stringify(lock)}`,
      'write it with a fence',
    )
  }
  if (lock !== undefined && lock !== fence.lock) {
    return refused(
      'mismatch',
      `register ${name} is fenced by the lock ${JSON.stringify(lock)}, not ${JSON.stringify(fence.lock)}`,
    )
  }
  if (lock === undefined && command.ifVersion === undefined) {
    return refused('invalid', `the first fenced write of register ${name} needs ifVersion`)
  }
  const hold = machine.holds.get(fence.hold)
  const held = hold?.held.find((one) => one.name === fence.lock)
  if (hold === undefined || held === undefined || hold.session === undefined || hold.session.id !== command.session) {
    return refused('not-holder', `hold ${fence.hold} of ${JSON.stringify(fence.lock)} does not exist (any more)`)
  }
  if (held.mode !== 'exclusive') {
    return refused(
      'mismatch',
      `a fence is an exclusive hold; ${fence.hold} has ${JSON.stringify(fence.lock)} in another mode`,
    )
  }
  return undefined
}

function put(machine: Machine, command: Put, known: Register | undefined): Result {
  if (!machine.canDraw) return refused('limit', `the counter of epoch ${machine.epoch} is full`)
  if (known === undefined && machine.registers.size >= machine.limits.registers) {
    return refused('limit', `the service has ${machine.limits.registers} registers, and no room for more`)
  }
  const version = tokenOf(machine.epoch, machine.draw()) as bigint
  const lock = command.fence?.lock
  if (known === undefined) {
    const register: Register = { key: command.key, value: command.value, version, lock }
    machine.registers.set(command.key, register)
    machine.hashRegister(register).endUpdate()
  } else {
    machine.hashRegister(known).beginUpdate()
    known.value = command.value
    known.version = version
    known.lock = lock
    machine.hashRegister(known).endUpdate()
  }
  machine.events.push({ kind: 'put', key: command.key, version })
  return { kind: 'put', version }
}

/** Deletes a register. One that does not exist is no error: it is absent afterwards, as requested. */
function remove(machine: Machine, register: Register | undefined): Result {
  if (register === undefined) return { kind: 'deleted' }
  machine.hashRegister(register).beginUpdate()
  machine.registers.delete(register.key)
  machine.events.push({ kind: 'deleted', key: register.key, version: register.version })
  return { kind: 'deleted' }
}
