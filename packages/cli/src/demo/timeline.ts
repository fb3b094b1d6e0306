import { splitToken } from '@leasehold/core'
import pc from 'picocolors'
import type { Half, DemoEvent, TimedEvent } from './model.js'

const WIDTH = 58
const LABEL = 9

/** Draws one half: a timeline for each process, for the lease of A, and for the record. */
export function drawTimeline(half: Half): string {
  const endMs = Math.max(...half.events.map((event) => event.atMs), 1) * 1.04
  const column = (atMs: number) => Math.min(WIDTH - 1, Math.floor((atMs / endMs) * WIDTH))
  const at = (actor: string, kind: DemoEvent['kind'], last = false) => {
    const found = half.events.filter((event) => event.actor === actor && event.what.kind === kind)
    return (last ? found.at(-1) : found[0])?.atMs
  }
  const tail = half.events.at(-1)?.atMs ?? endMs
  const a = new Lane()
    .fill(column(at('A', 'held') ?? 0), column(tail), pc.cyan('█'))
    .fill(column(at('A', 'stopped') ?? 0), column(at('A', 'continued') ?? tail), pc.dim('░'))
  const lease = new Lane().fill(
    column(at('A', 'held') ?? 0),
    column((at('A', 'held') ?? 0) + half.leaseMs),
    pc.cyan('━'),
  )
  const b = new Lane()
    .fill(column(at('B', 'started') ?? 0), column(at('B', 'held') ?? tail), pc.dim('·'))
    .fill(column(at('B', 'held') ?? 0), column(at('B', 'released') ?? tail), pc.magenta('█'))
  const lines = [
    row('', scale(endMs)),
    row('A', `${a}  ${pc.dim('█ runs  ░ stopped')}`),
    row('lease A', `${lease}  ${pc.dim('expires')}`),
    row('B', `${b}  ${pc.dim('· waits')}`),
    row('record', record(half, column)),
  ]
  return lines.join('\n')
}

/** Lists the events of a half, one per line. */
export function listEvents(half: Half): string {
  return half.events
    .filter((event) => event.what.kind !== 'started')
    .map((event) => `  ${pc.dim(`${(event.atMs / 1000).toFixed(2)} s`)}  ${sentence(event)}`)
    .join('\n')
}

/** A row of cells, blank where nothing was drawn. */
class Lane {
  readonly #cells: string[] = new Array<string>(WIDTH).fill(' ')

  fill(from: number, to: number, mark: string): this {
    for (let i = from; i <= Math.min(to, WIDTH - 1); i++) this.#cells[i] = mark
    return this
  }

  toString(): string {
    return this.#cells.join('')
  }
}

function row(label: string, text: string): string {
  return `  ${pc.bold(label.padEnd(LABEL))}${text}`.trimEnd()
}

function scale(endMs: number): string {
  const stepMs = endMs > 4_000 ? 1_000 : 500
  let text = ''
  for (let ms = 0; ms < endMs; ms += stepMs) {
    const start = Math.floor((ms / endMs) * WIDTH)
    const mark = `${ms / 1000}s`
    if (start < text.length || start + mark.length > WIDTH) continue
    text = text.padEnd(start) + mark
  }
  return pc.dim(text)
}

/** Draws the values of the record, each at the time of its write. */
function record(half: Half, column: (atMs: number) => number): string {
  const writes = half.events.filter((event) => event.what.kind === 'wrote' || event.what.kind === 'refused')
  let plain = String(half.before)
  let out = plain
  for (const event of writes) {
    const { what } = event
    const mark = what.kind === 'wrote' ? String(what.value) : '✗'
    const gap = Math.max(column(event.atMs) - plain.length, 1)
    plain += ' '.repeat(gap) + mark
    out += ' '.repeat(gap) + (what.kind === 'refused' ? pc.red(mark) : colour(event.actor)(mark))
  }
  return out
}

function colour(actor: string): (text: string) => string {
  if (actor === 'A') return pc.cyan
  return actor === 'B' ? pc.magenta : pc.bold
}

function sentence({ actor, what }: TimedEvent): string {
  return `${colour(actor)(actor === 'demo' ? '    ' : `  ${actor} `)} ${describe(what)}`
}

function describe(what: DemoEvent): string {
  switch (what.kind) {
    case 'ready':
    case 'started':
      return 'requests the lock'
    case 'held':
      return `holds the lock, token ${pc.bold(tokenText(what.token))}`
    case 'read':
      return `reads the record: ${what.value}`
    case 'sending':
      return `has checked its lease (valid) and is about to write ${what.value}`
    case 'wrote':
      return `has written ${pc.bold(String(what.value))}`
    case 'refused':
      return pc.red(
        `is refused with ${what.error}: the record has seen ${what.mark === null ? 'a later hold' : `token ${tokenText(what.mark)}`}`,
      )
    case 'released':
      return 'is done'
    case 'stopped':
      return pc.yellow('is stopped (SIGSTOP): a pause that is longer than its lease')
    case 'continued':
      return pc.yellow('continues (SIGCONT), unaware that time has passed')
    case 'failed':
      return pc.red(`fails: ${what.message}`)
  }
}

/** Formats a token without its epoch, as in the figure of Kleppmann's article. */
function tokenText(token: string): string {
  return String(splitToken(BigInt(token)).serial)
}
