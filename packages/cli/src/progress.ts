import { errorColours, isTerminal } from './colours.js'
import { duration } from './output.js'
import { cut, harmless } from './terminal-text.js'

const LINE = '\r\x1b[K'
/** Shortest time between two drawings of the line. */
const DRAW_MS = 100
/** How often a wait is shown. A shorter wait is not shown at all. */
const WAIT_MS = 500
const BAR = 24
const COLUMNS = 80

/**
 * A progress line on stderr for long work, cleared at its end. Nothing is written if stderr is not a terminal, or if the output
 * is JSON.
 */
export class Progress {
  readonly #isOn: boolean
  readonly #begun = performance.now()
  #drawnAt = Number.NEGATIVE_INFINITY
  #isDrawn = false
  #timer: NodeJS.Timeout | undefined

  constructor({ json }: { readonly json?: boolean | undefined }) {
    this.#isOn = json !== true && isTerminal(process.stderr)
  }

  /** Shows the current step, and its progress if that is known. */
  readonly step = (what: string, done?: number, total?: number): void => {
    const now = performance.now()
    if (!this.#isOn || now - this.#drawnAt < DRAW_MS) return
    this.#drawnAt = now
    this.#isDrawn = true
    const part = done === undefined || total === undefined || total <= 0 ? undefined : Math.min(1, done / total)
    const since = duration(Math.floor((now - this.#begun) / 1000) * 1000)
    const text = `${part === undefined ? '' : `${bar(part)} `}${harmless(what)}  ${now - this.#begun < 1000 ? '' : since}`
    process.stderr.write(LINE + errorColours.dim(cut(text.trimEnd(), (process.stderr.columns || COLUMNS) - 1)))
  }

  /** Shows how long a wait has taken, until `end`. */
  wait(what: string): void {
    if (this.#isOn) this.#timer = setInterval(() => this.step(what), WAIT_MS).unref()
  }

  end(): void {
    clearInterval(this.#timer)
    if (this.#isDrawn) process.stderr.write(LINE)
    this.#isDrawn = false
  }
}

/** Runs long work with a progress line. */
export async function withProgress<T>(
  options: { readonly json?: boolean | undefined },
  work: (progress: Progress) => T | Promise<T>,
): Promise<T> {
  const progress = new Progress(options)
  try {
    return await work(progress)
  } finally {
    progress.end()
  }
}

function bar(part: number): string {
  const full = Math.floor(part * BAR)
  return `[${'='.repeat(full)}${' '.repeat(BAR - full)}] ${String(Math.floor(part * 100)).padStart(3)} %`
}
