import { errorColours, outColours } from '../colours.js'
import { duration, note, print, printJson } from '../output.js'
import { type ServiceOptions, urlOf, withLocks } from '../service-client.js'
import { cut, harmless, widthOf } from '../terminal-text.js'
import { refresh, type Lost, type Picture, type Query } from './refresh.js'
import { canDraw, Screen, type Size } from './screen.js'

/** How often the view is redrawn between two queries, so that times count down. */
const DRAW_MS = 250

export interface View {
  /** The command, for the first line. */
  readonly title: string
  readonly query: Query
  /** The lines of the view, `agoMs` after the query. */
  readonly lines: (picture: Picture, agoMs: number, width: number) => string[]
  /** The summary in the first line. */
  readonly summary: (picture: Picture) => string
  /** The value that `--json` prints. */
  readonly json: (picture: Picture) => unknown
}

/** Shows a view until the user quits. Without a terminal, or with `--json`, prints it again after every change. */
export async function live(options: ServiceOptions, view: View): Promise<void> {
  if (canDraw() && options.json !== true) return await onScreen(options, view)
  const quitting = new AbortController()
  const quit = (): void => quitting.abort()
  process.once('SIGINT', quit).once('SIGTERM', quit)
  try {
    await withLocks(options, (locks) =>
      refresh(locks, view.query, { show: printer(options, view), signal: quitting.signal }),
    )
  } finally {
    process.off('SIGINT', quit).off('SIGTERM', quit)
  }
}

/** Returns a function that prints each change. Times that only count down are no change. */
function printer(options: ServiceOptions, view: View): (picture: Picture) => void {
  let printed = ''
  let isLost = false
  return (picture) => {
    if ((picture.lost !== undefined) !== isLost) {
      isLost = picture.lost !== undefined
      noteConnection(picture.lost)
    }
    const key = steady(view.json(picture))
    if (picture.lost !== undefined || key === printed) return
    if (options.json === true) printJson(view.json(picture))
    else print(`${printed === '' ? '' : '\n'}${view.lines(picture, 0, Number.POSITIVE_INFINITY).join('\n')}`)
    printed = key
  }
}

/** Reports on stderr that the connection was lost, or is back. */
export function noteConnection(lost: Lost | undefined): void {
  const text = lost === undefined ? 'reconnected' : `connection lost: ${lost.why}; reconnecting`
  note(errorColours.dim(`leasehold: ${harmless(text)}`))
}

function steady(value: unknown): string {
  return JSON.stringify(value, (key, part: unknown) => {
    if (key.endsWith('Ms') && key !== 'ttlMs') return undefined
    return typeof part === 'bigint' ? String(part) : part
  })
}

async function onScreen(options: ServiceOptions, view: View): Promise<void> {
  await withLocks(options, async (locks) => {
    // Before drawing: an unreachable service is an ordinary failure.
    await locks.connect()
    let picture: Picture | undefined
    await drawing(
      (size) => (picture === undefined ? [] : frame(options, view, picture, size)),
      (redraw, signal) =>
        refresh(locks, view.query, {
          signal,
          show: (next) => {
            picture = next
            redraw()
          },
        }),
    )
  })
}

/** Draws `lines` in place while `work` runs, at every `redraw` and at an interval. Quitting the screen aborts the work. */
export async function drawing(
  lines: (size: Size) => string[],
  work: (redraw: () => void, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const redraw = (): void => screen.draw(lines(screen.size))
  const screen = new Screen(() => redraw())
  const timer = setInterval(redraw, DRAW_MS)
  try {
    await work(redraw, screen.quit)
  } finally {
    clearInterval(timer)
    screen.close()
  }
}

function frame(options: ServiceOptions, view: View, picture: Picture, { columns, rows }: Size): string[] {
  const agoMs = performance.now() - picture.readAt
  const body = view.lines(picture, agoMs, columns)
  const { lost } = picture
  const shown = clipped(lost === undefined ? body : body.map(outColours.dim), rows - 3, columns)
  return [headLine(view.title, view.summary(picture), urlOf(options), columns), '', ...shown, statusLine(lost, columns)]
}

/** `leasehold ls billing   3 held, 1 waits        http://127.0.0.1:4100`. */
export function headLine(title: string, summary: string, url: string, columns: number): string {
  const left = cut(`${harmless(title)}   ${summary}`, columns)
  const place = harmless(url)
  const room = columns - widthOf(left) - widthOf(place)
  const bold = left.startsWith(title) ? outColours.bold(title) + left.slice(title.length) : left
  return room < 2 ? bold : `${bold}${' '.repeat(room)}${outColours.dim(place)}`
}

export function statusLine(lost: Lost | undefined, columns: number): string {
  if (lost === undefined) return `${outColours.green('●')} ${outColours.dim(cut('live   q quits', columns - 2))}`
  const since = duration(Math.floor((performance.now() - lost.since) / 1000) * 1000 || 0)
  return outColours.red(cut(`✗ connection lost ${since} ago, reconnecting: ${harmless(lost.why)}   q quits`, columns))
}

/** Cuts or pads the lines to the height of the screen, and shows how many are left out. */
export function clipped(lines: readonly string[], room: number, columns: number): string[] {
  if (lines.length <= room) return [...lines, ...Array<string>(Math.max(0, room - lines.length)).fill('')]
  const shown = lines.slice(0, Math.max(0, room - 1))
  return [...shown, outColours.dim(cut(`… ${lines.length - shown.length} more: ask for a prefix`, columns))]
}
