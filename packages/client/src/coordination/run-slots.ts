/** The slots of a `once` that have run, in the order in which they were claimed. */
export interface Slots {
  readonly ran: readonly string[]
  /** The greatest slot that is no longer listed; everything up to it counts as run. */
  readonly forgotten: string
}

/** Listed slots. */
export const SLOTS_MAX = 100

export function hasRun(slots: Slots, slot: string): boolean {
  return slots.ran.includes(slot) || (slots.forgotten !== '' && compareSlots(slot, slots.forgotten) <= 0)
}

/** Adds `slot`, and drops the smallest ones beyond the limit. */
export function addRun(slots: Slots, slot: string): Slots {
  const ran = [...slots.ran, slot]
  let { forgotten } = slots
  while (ran.length > SLOTS_MAX) {
    const smallest = ran.reduce((least, one) => (compareSlots(one, least) < 0 ? one : least))
    ran.splice(ran.indexOf(smallest), 1)
    if (forgotten === '' || compareSlots(smallest, forgotten) > 0) forgotten = smallest
  }
  return { ran, forgotten }
}

export function removeRun(slots: Slots, slot: string): Slots {
  return { ...slots, ran: slots.ran.filter((one) => one !== slot) }
}

/** Natural order: runs of digits by their value (`9` before `10`), everything else by code unit. The same everywhere. */
export function compareSlots(a: string, b: string): number {
  const left = partsOf(a)
  const right = partsOf(b)
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = comparePart(left[i] ?? '', right[i] ?? '')
    if (difference !== 0) return difference
  }
  return a < b ? -1 : a > b ? 1 : 0
}

function partsOf(slot: string): readonly string[] {
  return slot.match(/\d+|\D+/g) ?? []
}

function comparePart(a: string, b: string): number {
  if (a === b) return 0
  if (/^\d/.test(a) && /^\d/.test(b)) {
    const difference = BigInt(a) - BigInt(b)
    if (difference !== 0n) return difference < 0n ? -1 : 1
    return 0
  }
  return a < b ? -1 : 1
}
