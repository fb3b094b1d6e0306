import { AcquireTimeoutError, InvalidError } from '@leasehold/core'
import type { Hold } from '../hold/hold.js'
import { type AcquireOptions, checkKeys, describe } from '../options.js'
import type { Register, RegisterEntry } from './register.js'
import { addRun, hasRun, type Slots, removeRun } from './run-slots.js'

export interface OnceOptions extends Pick<AcquireOptions, 'ttl' | 'wait' | 'signal' | 'margin'> {
  /**
   * Names the run: the nominal time of the tick, as a Date or as text, so that a replica whose timer fires early skips
   * nothing. Later slots come later in natural order: `'2026-11-29T03:00Z'`, `'week-9'` before `'week-10'`.
   */
  readonly slot: string | Date
  /** The effect of an error of the function: `'keep'` (default) counts the slot as run, `'free'` lets a later call try it again. */
  readonly onError?: 'keep' | 'free'
}

export interface OnceContext {
  request<T>(name: string, options: AcquireOptions, body: (hold: Hold) => Promise<T>): Promise<T>
  register(key: string): Register
}

type Outcome<T> = { ran: false } | { ran: true; value: T }

const SLOT_CHARS_MAX = 200
const NOT_RUN = Object.freeze({ ran: false })

/**
 * Runs `run` once per slot over all instances. A register that the lock fences keeps the slots that have run, so that
 * a holder that has lost the lock cannot claim a slot. Old slots are forgotten, and count as run.
 */
export async function runOnce<T>(
  context: OnceContext,
  name: string,
  options: OnceOptions,
  run: (hold: Hold) => T | Promise<T>,
): Promise<Outcome<T>> {
  checkKeys(options, ['slot', 'onError', 'ttl', 'wait', 'signal', 'margin'], 'once')
  const { slot: given, onError = 'keep', ...acquire } = options
  const slot = slotOf(given)
  if (onError !== 'keep' && onError !== 'free') {
    throw new InvalidError(`onError is 'keep' or 'free', not ${describe(onError)}`)
  }
  if (typeof run !== 'function') {
    throw new InvalidError('once needs a function', {
      hint: "locks.once('report', { slot: '2026-11-29T03:00Z' }, () => …)",
    })
  }
  const register = context.register(`once/${name}`)
  const isClaimed = async () => hasRun(slotsOf(await register.get()), slot)
  // After the claim a caller need not wait for the end of the run, unless an error would free the slot.
  if (onError === 'keep' && (await isClaimed())) return NOT_RUN
  try {
    return await context.request(`once/${name}`, acquire, (hold) => claimAndRun(register, slot, onError, hold, run))
  } catch (error) {
    if (error instanceof AcquireTimeoutError && onError === 'keep' && (await isClaimed())) return NOT_RUN
    throw error
  }
}

async function claimAndRun<T>(
  register: Register,
  slot: string,
  onError: 'keep' | 'free',
  hold: Hold,
  run: (hold: Hold) => T | Promise<T>,
): Promise<Outcome<T>> {
  const entry = await register.get()
  const before = slotsOf(entry)
  if (hasRun(before, slot)) return NOT_RUN
  const claimed = addRun(before, slot)
  await register.put(claimed, { fence: hold, ifVersion: entry?.version ?? 0n })
  try {
    return { ran: true, value: await run(hold) }
  } catch (error) {
    if (onError === 'free' && hold.state === 'held') await register.put(removeRun(claimed, slot), { fence: hold })
    throw error
  }
}

function slotOf(slot: unknown): string {
  const text = isDate(slot) ? slot.toISOString() : slot
  if (typeof text === 'string' && text !== '' && text.length <= SLOT_CHARS_MAX) return text
  throw new InvalidError(`slot names the run: a Date, or text of at most ${SLOT_CHARS_MAX} characters`, {
    hint: `write slot: '2026-11-29T03:00Z', not ${describe(slot)}`,
  })
}

function isDate(value: unknown): value is { toISOString(): string } {
  if (Object.prototype.toString.call(value) !== '[object Date]') return false
  return Number.isFinite((value as { getTime(): number }).getTime())
}

function slotsOf(entry: RegisterEntry | null): Slots {
  const value = entry?.value as Partial<Slots> | undefined
  return { ran: value?.ran ?? [], forgotten: value?.forgotten ?? '' }
}
