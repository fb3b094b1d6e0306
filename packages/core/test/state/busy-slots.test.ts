import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BusySlots } from '../../src/state/busy-slots.js'

describe('the busy slots of a semaphore', () => {
  it('are a set, of which the lowest number that is not in it is known', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.constant(-1), fc.nat({ max: 200 })), { maxLength: 400 }), (steps) => {
        const slots = new BusySlots()
        const model = new Set<number>()
        for (const step of steps) {
          let lowest = 0
          while (model.has(lowest)) lowest++
          expect(slots.lowestFree()).toBe(lowest)
          // Mostly the lowest is taken, as it is in a semaphore.
          const slot = step < 0 ? lowest : step
          if (model.delete(slot)) slots.free(slot)
          else {
            model.add(slot)
            slots.occupy(slot)
          }
          expect(slots.count).toBe(model.size)
        }
      }),
    )
  })

  it('may be as many as a semaphore has, and are given once', () => {
    const slots = new BusySlots()
    let wrong = 0
    for (let slot = 0; slot < 65_536; slot++) {
      if (slots.lowestFree() !== slot) wrong++
      slots.occupy(slot)
    }
    expect(wrong).toBe(0)
    expect(slots.lowestFree()).toBe(65_536)
    slots.free(65_535)
    slots.free(31)
    expect(slots.lowestFree()).toBe(31)
    expect(() => slots.occupy(32)).toThrow('granted twice')
    expect(() => slots.free(31)).toThrow('freed twice')
  })
})
