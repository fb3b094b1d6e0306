import type { ConfigurationChange, ConfigurationStep, Entry } from '@leasehold/raft'
import { assert } from '../assert.js'
import { type ByteReader, type ByteWriter, FormatError } from '../bytes.js'

const NORMAL = 0
const CONFIGURATION = 1
const TRANSITIONS = ['auto', 'jointImplicit', 'jointExplicit'] as const
const STEPS = ['addVoter', 'addLearner', 'remove', 'update'] as const

/** Writes entries with consecutive indexes: count, first index, then term, kind and content of each. */
export function writeEntries(writer: ByteWriter, entries: readonly Entry[]): void {
  writer.varint(entries.length)
  const first = entries[0]
  if (first === undefined) return
  writer.varint(first.index)
  let index = first.index
  for (const entry of entries) {
    assert(entry.index === index, () => `entry ${entry.index} where ${index} follows`)
    index++
    writer.varint(entry.term)
    if (entry.kind === 'normal') {
      writer.u8(NORMAL)
      writer.bytes(entry.data)
    } else {
      writer.u8(CONFIGURATION)
      writeChange(writer, entry.change)
    }
  }
}

/** Reads what {@link writeEntries} wrote. The data is copied, so that it does not keep the whole buffer alive. */
export function readEntries(reader: ByteReader): Entry[] {
  const count = reader.varint()
  if (count > reader.remaining) throw new FormatError(`${count} entries in ${reader.remaining} bytes`)
  const entries: Entry[] = []
  const first = count > 0 ? reader.varint() : 0
  for (let i = 0; i < count; i++) {
    const index = first + i
    const term = reader.varint()
    const kind = reader.u8()
    if (kind === NORMAL) entries.push({ term, index, kind: 'normal', data: reader.bytes().slice() })
    else if (kind === CONFIGURATION) entries.push({ term, index, kind: 'configuration', change: readChange(reader) })
    else throw new FormatError(`unknown kind of entry: ${kind}`)
  }
  return entries
}

/** About how many bytes an entry takes in a frame or a message; never less than it does. */
export function entryBytes(entry: Entry): number {
  const content = entry.kind === 'normal' ? entry.data.length : entry.change.context.length + entry.change.steps.length * 9
  return content + 32
}

function writeChange(writer: ByteWriter, change: ConfigurationChange): void {
  writer.u8(TRANSITIONS.indexOf(change.transition))
  writer.varint(change.steps.length)
  for (const step of change.steps) {
    writer.u8(STEPS.indexOf(step.kind))
    writer.varint(step.node)
  }
  writer.bytes(change.context)
}

function readChange(reader: ByteReader): ConfigurationChange {
  const transition = TRANSITIONS[reader.u8()]
  if (transition === undefined) throw new FormatError('unknown transition of a configuration change')
  const steps: ConfigurationStep[] = []
  for (let count = reader.varint(); count > 0; count--) {
    const kind = STEPS[reader.u8()]
    if (kind === undefined) throw new FormatError('unknown step of a configuration change')
    steps.push({ kind, node: reader.varint() })
  }
  return { transition, steps, context: reader.bytes().slice() }
}
