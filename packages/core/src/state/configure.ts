import { FLOOR_MAX } from '../counter-floor.js'
import { LEVEL_FLOOR, LEVEL_MAX, LIMIT_NAMES, PERMITS_MAX } from '../limits.js'
import type { Configure, Limits, Refused, Result } from '../operations.js'
import type { Machine } from './machine.js'
import { refused } from './elements.js'

/** Changes settings: all of them or none. */
export function configure(machine: Machine, command: Configure): Result {
  const problem =
    limitsProblem(command.limits) ??
    levelProblem(machine, command.level) ??
    permitsProblem(machine, command) ??
    floorProblem(machine, command)
  if (problem !== undefined) return problem
  if (command.limits !== undefined) machine.limits = { ...machine.limits, ...command.limits }
  if (command.level !== undefined) machine.level = command.level
  if (command.permits !== undefined) {
    const lock = machine.locks.get(command.permits.name)
    if (lock !== undefined) {
      machine.hashPermits(lock).beginUpdate()
      if (lock.semaphore !== undefined) lock.semaphore.size = command.permits.size
      machine.hashPermits(lock).endUpdate()
      machine.markDirty(lock)
    }
  }
  if (command.floor !== undefined) machine.raiseCounter(command.floor)
  return { kind: 'configured' }
}

function limitsProblem(limits: Partial<Limits> | undefined): Refused | undefined {
  for (const [name, value] of Object.entries(limits ?? {})) {
    if (!(LIMIT_NAMES as string[]).includes(name))
      return refused('invalid', `there is no limit ${JSON.stringify(name)}`)
    if (!Number.isSafeInteger(value) || value < 0)
      return refused('invalid', `the limit ${name} is a whole number, not ${value}`)
  }
  return undefined
}

function levelProblem(machine: Machine, level: number | undefined): Refused | undefined {
  if (level === undefined) return undefined
  if (!Number.isSafeInteger(level) || level < machine.level || level > LEVEL_MAX) {
    return refused('invalid', `the feature level is ${machine.level} to ${LEVEL_MAX}, not ${level}`)
  }
  return undefined
}

function permitsProblem(machine: Machine, { permits }: Configure): Refused | undefined {
  if (permits === undefined) return undefined
  const lock = machine.locks.get(permits.name)
  if (lock === undefined || lock.permits === 0) {
    return refused('mismatch', `${JSON.stringify(permits.name)} is not a semaphore in use`)
  }
  if (!Number.isSafeInteger(permits.size) || permits.size < 1 || permits.size > PERMITS_MAX) {
    return refused('invalid', `a semaphore has 1 to ${PERMITS_MAX} permits, not ${permits.size}`)
  }
  return undefined
}

function floorProblem(machine: Machine, { level = machine.level, floor }: Configure): Refused | undefined {
  if (floor === undefined) return undefined
  if (level < LEVEL_FLOOR) return refused('invalid', `a floor needs feature level ${LEVEL_FLOOR}, not ${level}`)
  if (Number.isSafeInteger(floor) && floor >= 0 && floor <= FLOOR_MAX) return undefined
  return refused('invalid', `a floor is a whole number up to ${FLOOR_MAX}, not ${floor}`)
}
