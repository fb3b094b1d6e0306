import { assert, type Reader, type Writer } from '@leasehold/core'
import type { ConfigurationChange, ConfigurationStep, Entry, Index, Term } from '@leasehold/raft'

const NORMAL = 0
const CONFIGURATION = 1
const TRANSITIONS = ['auto', 'jointImplicit', 'jointExplicit'] as const
const STEPS = ['addVoter', 'addLearner', 'remove', 'update'] as const

/** Writes entries with consecutive indexes: count, first index, then term, kind and content of each. */
export function writeEntries(writer: Writer, entries: readonly Entry[]): void {
  writer.varuint(entries.length)
  const first = entries[0]
  if (first === undefined) return
  writer.varuint(first.index)
  let index = first.index
  for (const entry of entries) {
    assert(entry.index === index, () => `entry ${entry.index} where ${index} follows`)
    index++
    writer.varuint(entry.term)
    writeContent(writer, entry)
  }
}

/** Reads what {@link writeEntries} wrote. The data is copied. */
export function readEntries(reader: Reader): Entry[] {
  const count = reader.count(3)
  const entries: Entry[] = []
  const first = count > 0 ? reader.varuint() : 0
  for (let i = 0; i < count; i++) entries.push(readContent(reader, first + i, reader.varuint()))
  return entries
}

/** Writes the kind and content of an entry, without index and term. */
export function writeContent(writer: Writer, entry: Entry): void {
  if (entry.kind === 'normal') {
    writer.u8(NORMAL)
    writer.bytes(entry.data)
  } else {
    writer.u8(CONFIGURATION)
    writeChange(writer, entry.change)
  }
}

export function readContent(reader: Reader, index: Index, term: Term): Entry {
  const kind = reader.u8()
  if (kind === NORMAL) return { term, index, kind: 'normal', data: reader.bytes() }
  if (kind === CONFIGURATION) return { term, index, kind: 'configuration', change: readChange(reader) }
  throw reader.wrong(`a kind of entry, not ${kind}`, reader.offset - 1)
}

/** Returns an upper estimate of the bytes of an entry in a frame or a message. */
export function entryBytes(entry: Entry): number {
  const content =
    entry.kind === 'normal' ? entry.data.length : entry.change.context.length + entry.change.steps.length * 9
  return content + 32
}

function writeChange(writer: Writer, change: ConfigurationChange): void {
  writer.u8(TRANSITIONS.indexOf(change.transition))
  writer.varuint(change.steps.length)
  for (const step of change.steps) {
    writer.u8(STEPS.indexOf(step.kind))
    writer.varuint(step.node)
  }
  writer.bytes(change.context)
}

function readChange(reader: Reader): ConfigurationChange {
  const transition = TRANSITIONS[reader.u8()]
  if (transition === undefined) throw reader.wrong('the transition of a configuration change')
  const steps: ConfigurationStep[] = []
  for (let count = reader.varuint(); count > 0; count--) {
    const kind = STEPS[reader.u8()]
    if (kind === undefined) throw reader.wrong('a step of a configuration change')
    steps.push({ kind, node: reader.varuint() })
  }
  return { transition, steps, context: reader.bytes() }
}
