import { isTerminal } from '../colours.js'

const ENTER = '\x1b[?1049h\x1b[?25l'
const LEAVE = '\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const REST_OF_LINE = '\x1b[K'
const REST_OF_SCREEN = '\x1b[J'
/** The size of a terminal that does not report one. */
const COLUMNS = 80
const ROWS = 24

/** Keys that quit: q, Escape, Ctrl-C and Ctrl-D, as raw input. */
const QUIT = new Set(['q', 'Q', '\x1b', '\x03', '\x04'])
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** Whether output can be drawn in place: stdout is a terminal with a movable cursor. */
export function canDraw(): boolean {
  return isTerminal(process.stdout)
}

/**
 * The terminal during a live view. It uses the alternate screen, so that the previous content is restored at the end, even
 * if the process exits early. The view ends with q, Ctrl-C or a signal.
 */
export class Screen {
  /** Aborts when the user quits. */
  readonly quit: AbortSignal
  readonly #quit = new AbortController()
  readonly #isRaw: boolean
  readonly #leave = (): void => {
    process.stdout.write(LEAVE)
    if (this.#isRaw) process.stdin.setRawMode(false)
  }
  readonly #end = (): void => this.#quit.abort()
  readonly #key = (text: string): void => {
    if (QUIT.has(text)) this.#end()
  }
  readonly #resized: () => void

  constructor(resized: () => void) {
    this.quit = this.#quit.signal
    this.#resized = resized
    this.#isRaw = process.stdin.isTTY === true
    process.once('exit', this.#leave)
    for (const signal of SIGNALS) process.on(signal, this.#end)
    process.stdout.on('resize', this.#resized)
    if (this.#isRaw) {
      process.stdin.setRawMode(true).setEncoding('utf8').on('data', this.#key)
      process.stdin.resume()
    }
    process.stdout.write(ENTER)
  }

  get size(): Size {
    const { columns, rows } = process.stdout
    return { columns: columns || COLUMNS, rows: rows || ROWS }
  }

  /** Draws over the previous content. Lines must fit the size. */
  draw(lines: readonly string[]): void {
    const shown = lines.slice(0, this.size.rows)
    process.stdout.write(`${HOME}${shown.join(`${REST_OF_LINE}\n`)}${REST_OF_LINE}${REST_OF_SCREEN}`)
  }

  close(): void {
    process.off('exit', this.#leave)
    for (const signal of SIGNALS) process.off(signal, this.#end)
    process.stdout.off('resize', this.#resized)
    process.stdin.off('data', this.#key)
    process.stdin.pause()
    this.#leave()
  }
}
