import type { Index } from '../brand.js'
import { readLimits } from '../codec/commands.js'
import { Reader } from '../codec/reader.js'
import { DEFAULT_LIMITS, LEVEL_MAX } from '../limits.js'
import type { Session } from './elements.js'
import { Machine } from './machine.js'
import {
  FORMAT_ID_DISTANCES,
  FORMAT_WHOLE_IDS,
  readAnswers,
  readDelay,
  readHold,
  readRegister,
  readSession,
  readWaiter,
  SnapshotIds,
  snapshotFormat,
} from './snapshot-format.js'

/** Builds the state from a snapshot and checks all cross-references. Throws for bytes that are not a snapshot. */
export function decodeSnapshot(bytes: Uint8Array): Machine {
  const reading = new SnapshotReader(bytes)
  for (;;) {
    const machine = reading.step(Number.POSITIVE_INFINITY)
    if (machine !== undefined) return machine
  }
}

/** Reads a snapshot in steps, with the errors of {@link decodeSnapshot}. */
export class SnapshotReader {
  readonly #elements: Generator<number, Machine>
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#elements = readElements(new Reader(bytes))
  }

  /** Reads about this many bytes (a single element may have more). Returns the state once all of it is read. */
  step(bytes: number): Machine | undefined {
    for (const end = this.#at + bytes; this.#at < end; ) {
      const { value, done } = this.#elements.next()
      if (done === true) return value
      this.#at = value
    }
    return undefined
  }
}

/** Reads the elements and yields the offset after each of them. */
function* readElements(reader: Reader): Generator<number, Machine> {
  const { machine, ids } = readHead(reader)
  yield* each(reader, 2, (r) => machine.ensureLock(r.string(), r.varuint()))
  const sessions: Session[] = []
  yield* each(reader, 1, (r) => sessions.push(readSession(r, machine, ids)))
  yield* each(reader, 1, (r) => readHold(r, machine, ids))
  yield* each(reader, 1, (r) => readWaiter(r, machine))
  yield* each(reader, 1, (r) => readDelay(r, machine, ids))
  let next = 0
  yield* each(reader, 1, (r) => readAnswers(r, machine, sessions[next++], ids))
  yield* each(reader, 1, (r) => readRegister(r, machine))
  reader.finish()
  return machine
}

/** Reads a list of elements that take at least `bytesEach` bytes each. */
function* each(reader: Reader, bytesEach: number, read: (reader: Reader) => unknown): Generator<number, void> {
  for (let left = reader.count(bytesEach); left > 0; left--) {
    read(reader)
    yield reader.offset
  }
}

function readHead(reader: Reader): { readonly machine: Machine; readonly ids: SnapshotIds } {
  const format = reader.u8()
  if (format !== FORMAT_WHOLE_IDS && format !== FORMAT_ID_DISTANCES)
    throw reader.wrong(`a snapshot of format ${FORMAT_WHOLE_IDS} or ${FORMAT_ID_DISTANCES}, not ${format}`, 0)
  const epoch = reader.varuint()
  const index = reader.varuint() as Index
  const now = reader.varuint()
  const counter = reader.varuint()
  const arrivals = reader.varuint()
  const level = reader.varuint()
  if (level > LEVEL_MAX) throw reader.wrong(`a feature level up to ${LEVEL_MAX}, not ${level}`)
  const machine = new Machine(epoch, { ...DEFAULT_LIMITS, ...readLimits(reader) })
  machine.index = index
  machine.now = now
  machine.counter = counter
  machine.arrivals = arrivals
  machine.level = level
  if (format !== snapshotFormat(machine)) throw reader.wrong(`format ${format} of a state of level ${level}`, 0)
  return { machine, ids: new SnapshotIds(format, counter) }
}
