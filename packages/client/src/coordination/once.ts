import { AcquireTimeoutError, InvalidError, LimitError } from '@leasehold/core'
import type { Hold } from '../hold/hold.js'
import { type AcquireOptions, checkKeys, describe } from '../options.js'
import type { Register } from './register.js'
import { addRun, hasRun, NAME_AGE_S, NAMES_MAX, normalizeSlot, parseSlots, removeRun } from './run-slots.js'

export interface OnceOptions extends Pick<AcquireOptions, 'ttl' | 'wait' | 'signal' | 'margin'> {
  /**
   * Names the run: the scheduled time, not the time at which a timer fired. Times have an order: a Date, or an ISO 8601 instant in UTC
   * such as `'2026-11-29T03:00Z'`, is skipped if it ran, or is older than the last 100 that ran. Any other text (a commit hash, a
   * UUID, a local date) is a name without an order, and is skipped only if it ran.
   */
  readonly slot: string | Date
  /** The effect of an error of the function: `'keep'` (default) counts the slot as run, `'free'` lets a later call try it again. */
  readonly onError?: 'keep' | 'free'
}

export interface OnceContext {
  request<T>(name: string, options: AcquireOptions, body: (hold: Hold) => Promise<T>): Promise<T>
  register(key: string): Register
  /** Milliseconds of the calendar clock. */
  wallMs(): number
}

type Outcome<T> = { ran: false } | { ran: true; value: T }

const SLOT_CHARS_MAX = 200
const NOT_RUN = Object.freeze({ ran: false })

/**
 * Runs `run` once per slot over all instances. A register that the lock fences keeps the slots that have run, so that
 * a holder that has lost the lock cannot claim a slot. `{ ran: false }`: the slot was claimed before, or is a time that later
 * ones have passed.
 *
 * @throws LimitError when 1 000 names were claimed within a day: another one could not be remembered
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
  const isClaimed = async () => hasRun(parseSlots((await register.get())?.value), slot)
  // After the claim a caller need not wait for the end of the run, unless an error would free the slot.
  if (onError === 'keep' && (await isClaimed())) return NOT_RUN
  try {
    return await context.request(`once/${name}`, acquire, (hold) =>
      claimAndRun({ context, name, register, slot, onError }, hold, run),
    )
  } catch (error) {
    if (error instanceof AcquireTimeoutError && onError === 'keep' && (await isClaimed())) return NOT_RUN
    throw error
  }
}

interface Claim {
  readonly context: OnceContext
  readonly name: string
  readonly register: Register
  readonly slot: string
  readonly onError: 'keep' | 'free'
}

async function claimAndRun<T>(
  { context, name, register, slot, onError }: Claim,
  hold: Hold,
  run: (hold: Hold) => T | Promise<T>,
): Promise<Outcome<T>> {
  const entry = await register.get()
  const before = parseSlots(entry?.value)
  if (hasRun(before, slot)) return NOT_RUN
  const claimed = addRun(before, slot, Math.floor(context.wallMs() / 1_000))
  if (claimed === undefined) {
    const text = `once(${JSON.stringify(name)}) has no room for the slot ${JSON.stringify(slot)}: at most ${NAMES_MAX} slots`
    throw new LimitError(
      `${text} (fewer if they are long) that are not times are remembered for ${NAME_AGE_S / 3_600} h`,
      {
        hint: 'use a Date as the slot, of which any number may run, or spread the slots over several names',
      },
    )
  }
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
  if (typeof text === 'string' && text !== '' && text.length <= SLOT_CHARS_MAX) return normalizeSlot(text)
  throw new InvalidError(`slot names the run: a Date, or text of at most ${SLOT_CHARS_MAX} characters`, {
    hint: `write slot: '2026-11-29T03:00Z', not ${describe(slot)}`,
  })
}

function isDate(value: unknown): value is { toISOString(): string } {
  if (Object.prototype.toString.call(value) !== '[object Date]') return false
  return Number.isFinite((value as { getTime(): number }).getTime())
}
