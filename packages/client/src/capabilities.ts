import { InvalidError } from '@leasehold/core'
import type { AcquireOptions, Capabilities, Engine } from './engine.js'

/** The capabilities of a Leasehold service and of an embedded replica. */
export const ALL_CAPABILITIES: Capabilities = {
  modes: ['exclusive', 'shared', 'permits'],
  severalLocks: true,
  lockDelay: true,
  persistent: true,
  portable: true,
  watch: true,
  registers: true,
  fencedRegisters: true,
}

/** Every ability, by its name in messages and tables. */
export const ABILITIES = {
  exclusive: (able: Capabilities) => able.modes.includes('exclusive'),
  shared: (able: Capabilities) => able.modes.includes('shared'),
  permits: (able: Capabilities) => able.modes.includes('permits'),
  'several locks': (able: Capabilities) => able.severalLocks,
  'lock delay': (able: Capabilities) => able.lockDelay,
  'persistent holds': (able: Capabilities) => able.persistent,
  'portable holds': (able: Capabilities) => able.portable,
  watch: (able: Capabilities) => able.watch,
  registers: (able: Capabilities) => able.registers,
  'fenced registers': (able: Capabilities) => able.fencedRegisters,
} as const satisfies Record<string, (able: Capabilities) => boolean>

export type Ability = keyof typeof ABILITIES

/** Engines with all abilities, for hints when another engine lacks one. */
export const COMPLETE_ENGINES = ['http(s)://', 'file:', 'memory:', 'etcd://', 'postgres://'] as const

/** @throws InvalidError that names engines with the ability */
export function requireAbility(engine: Pick<Engine, 'name' | 'capabilities'>, ability: Ability): void {
  if (ABILITIES[ability](engine.capabilities)) return
  throw new InvalidError(`the engine ${engine.name} has no ${ability}`, {
    hint: `engines that have it: ${COMPLETE_ENGINES.join(', ')}`,
  })
}

/** Checks that the engine supports an acquire. @throws InvalidError */
export function requireAcquire(
  engine: Pick<Engine, 'name' | 'capabilities'>,
  asked: Pick<AcquireOptions, 'locks' | 'lockDelayMs' | 'persistent' | 'portable'>,
): void {
  for (const { mode } of asked.locks) requireAbility(engine, typeof mode === 'object' ? 'permits' : mode)
  if (asked.locks.length > 1) requireAbility(engine, 'several locks')
  if (asked.lockDelayMs > 0) requireAbility(engine, 'lock delay')
  if (asked.persistent) requireAbility(engine, 'persistent holds')
  if (asked.portable) requireAbility(engine, 'portable holds')
}
