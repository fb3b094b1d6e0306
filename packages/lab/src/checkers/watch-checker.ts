import type { Event, Index } from '@leasehold/core'
import type { Violations } from './violation.js'

export interface Place {
  readonly index: number
  readonly ordinal: number
}

/** What one watch has been given, from its beginning to an end that it was told of. */
export class WatchRecord {
  readonly places: Place[] = []
  constructor(
    readonly client: string,
    /** The cursor that it began after; undefined: from when it was opened. */
    readonly from: Place | undefined,
  ) {}
}

/** Every watch shows exactly what happened, in order, without a gap. */
export class WatchChecker {
  #happened: Place[] = []
  #records: WatchRecord[] = []

  readonly #violations: Violations

  constructor(violations: Violations) {
    this.#violations = violations
  }

  entry(index: Index, events: readonly Event[]): void {
    for (let i = 0; i < events.length; i++) this.#happened.push({ index, ordinal: i + 1 })
  }

  begin(client: string, from?: Place): WatchRecord {
    const record = new WatchRecord(client, from)
    this.#records.push(record)
    return record
  }

  /** Another history begins: what was watched so far is judged now. */
  restored(): void {
    this.finish()
    this.#happened = []
    this.#records = []
  }

  /** At the end of a run. Watches of everything only. */
  finish(): void {
    for (const record of this.#records) this.#check(record)
  }

  #check({ client, from, places }: WatchRecord): void {
    const first = places[0]
    if (!first) return
    let at = from ? this.#after(from) : this.#after({ index: first.index, ordinal: first.ordinal - 1 })
    for (const place of places) {
      const expected = this.#happened[at++]
      if (expected && expected.index === place.index && expected.ordinal === place.ordinal) continue
      const text = expected ? `${expected.index}.${expected.ordinal}` : 'nothing'
      this.#violations.report(
        'I9',
        `a watch of ${client} shows event ${place.index}.${place.ordinal} where ${text} belongs`,
      )
      return
    }
  }

  /** Position of the first event after a place. */
  #after(place: Place): number {
    let low = 0
    let high = this.#happened.length
    while (low < high) {
      const middle = (low + high) >> 1
      const { index, ordinal } = this.#happened[middle] as Place
      if (index < place.index || (index === place.index && ordinal <= place.ordinal)) low = middle + 1
      else high = middle
    }
    return low
  }
}
