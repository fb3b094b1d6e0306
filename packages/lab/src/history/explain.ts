import type { Model } from './model.js'
import type { Operation } from './operation.js'
import type { Blockade } from './search.js'
import type { EntryList } from './entry-list.js'
import type { Transitions } from './transitions.js'

/** An operation in words, with where it stands. */
export interface ExplainedOperation {
  readonly process: string
  readonly text: string
  readonly line: number | undefined
}

/**
 * Why a history is not linearizable: up to the return of `stuck` the smallest prefix that has no order.
 * Without that operation's return, all before it can be put in order.
 */
export interface Explanation {
  /** Lock or register; empty for a history of one. */
  readonly key: string
  /** Operations of this object called up to the return of `stuck`. */
  readonly prefix: number
  readonly stuck: ExplainedOperation
  /** States that one order or another reaches just before; not all of them when there are many. */
  readonly states: readonly string[]
  /** The last operations of one order that gets there. */
  readonly recent: readonly ExplainedOperation[]
  /** Called by then, not yet placed in that order, and of no help. */
  readonly open: readonly ExplainedOperation[]
  /** All of this, for people. */
  readonly text: string
}

interface Judged {
  readonly key: string
  readonly entries: EntryList
  readonly transitions: Transitions
}

const MAX_OPEN = 12
const MAX_TEXT = 160

/** Puts a blockade into words. */
export function explain(model: Model, { key, entries, transitions }: Judged, blockade: Blockade): Explanation {
  const told = (index: number) => tell(model, entries.operations[index] as Operation)
  const end = entries.returnOf[blockade.operation] as number
  const parts = {
    key,
    prefix: entries.callOf.reduce((count, call) => (call < end ? count + 1 : count), 0),
    stuck: told(blockade.operation),
    states: blockade.states.map((state) => shorten(transitions.text(state))),
    recent: blockade.recent.map(told),
    open: blockade.open.slice(0, MAX_OPEN).map(told),
  }
  return { ...parts, text: render(parts, entries.operations.length, blockade.open.length) }
}

function render(parts: Omit<Explanation, 'text'>, operations: number, open: number): string {
  const name = parts.key === '' ? '' : `${parts.key}: `
  const lines = [
    `${name}no order of the first ${parts.prefix} of ${operations} operations explains`,
    `    ${place(parts.stuck)}`,
    '  before it, the state can only be',
    ...parts.states.map((state) => `    ${state}`),
  ]
  if (parts.recent.length > 0)
    lines.push('  last in one order that gets there', ...parts.recent.map((one) => `    ${place(one)}`))
  if (parts.open.length > 0)
    lines.push('  open meanwhile, and no help', ...parts.open.map((one) => `    ${place(one)}`))
  if (open > parts.open.length) lines.push(`    and ${open - parts.open.length} more`)
  return lines.join('\n')
}

function place({ line, process, text }: ExplainedOperation): string {
  return `${line === undefined ? '' : `line ${line}, `}process ${process}: ${text}`
}

function tell(model: Model, operation: Operation): ExplainedOperation {
  const doubt = operation.outcome === 'unknown' ? ' (outcome unknown)' : ''
  return {
    process: operation.process,
    text: `${shorten(model.describe(operation))}${doubt}`,
    line: operation.line,
  }
}

function shorten(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT / 2)} … ${text.slice(-MAX_TEXT / 2)}`
}
