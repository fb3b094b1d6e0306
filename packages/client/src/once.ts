import { InvalidError } from '@leasehold/core'
import type { Hold } from './hold.js'
import { type AcquireOptions, checkKeys, describe } from './options.js'
import type { Register } from './register.js'

export interface OnceOptions extends Pick<AcquireOptions, 'ttl' | 'wait' | 'signal' | 'margin'> {
  /** Names the run: the nominal time of the tick, so that a replica whose timer fires early skips nothing. Later slots compare greater. */
  readonly slot: string
  /** What a throw of the function does: `'keep'` (default) counts the slot as run, `'free'` lets another instance try. */
  readonly onError?: 'keep' | 'free'
}

export interface OnceContext {
  request<T>(name: string, options: AcquireOptions, body: (hold: Hold) => Promise<T>): Promise<T>
  register(key: string): Register
}

const SLOT_CHARS_MAX = 200

/**
 * Runs `run` once per slot over all instances. The last slot is kept in a register that the lock fences, so that a
 * holder that has lost the lock cannot claim a slot; older slots are forgotten, and count as run.
 */
export async function runOnce<T>(
  context: OnceContext,
  name: string,
  options: OnceOptions,
  run: (hold: Hold) => T | Promise<T>,
): Promise<{ ran: false } | { ran: true; value: T }> {
  checkKeys(options, ['slot', 'onError', 'ttl', 'wait', 'signal', 'margin'], 'once')
  const { slot, onError = 'keep', ...acquire } = options
  if (typeof slot !== 'string' || slot === '' || slot.length > SLOT_CHARS_MAX) {
    throw new InvalidError(`slot names the run, such as '2026-11-29T03:00Z', not ${describe(slot)}`)
  }
  if (onError !== 'keep' && onError !== 'free') throw new InvalidError("onError is 'keep' or 'free'")
  return context.request(`once/${name}`, acquire, async (hold) => {
    const register = context.register(`once/${name}`)
    const before = await register.get()
    const last = (before?.value as { slot?: string } | undefined)?.slot
    if (last !== undefined && last >= slot) return { ran: false }
    await register.put({ slot }, { fence: hold, ifVersion: before?.version ?? 0n })
    try {
      return { ran: true, value: await run(hold) }
    } catch (error) {
      if (onError === 'free' && hold.state === 'held') await register.put({ slot: last ?? '' }, { fence: hold })
      throw error
    }
  })
}
