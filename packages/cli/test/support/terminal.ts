import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { BIN, SOON_MS, until } from './cli.js'

/** Whether a pseudo terminal can be had. */
export const hasTerminal =
  spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') === true

const ESC = '\x1b'
/** Orders to the terminal: colours, and where to write. */
const ORDERS = new RegExp(`${ESC}\\[[0-9;?]*[a-zA-Z]`, 'g')
/** Orders that change a colour or a weight. */
export const COLOURS = new RegExp(`${ESC}\\[\\d+m`, 'g')

/** The command line in a pseudo terminal. */
export class TerminalCli {
  readonly #process: ChildProcess
  readonly finished: Promise<number | null>
  /** Everything that was written to the terminal. */
  output = ''

  constructor(
    args: readonly string[],
    { columns = 100, rows = 20, env = {} }: { columns?: number; rows?: number; env?: NodeJS.ProcessEnv } = {},
  ) {
    const quoted = [process.execPath, BIN, ...args].map((word) => `'${word}'`).join(' ')
    const { NO_COLOR: _, FORCE_COLOR: __, ...inherited } = process.env
    this.#process = spawn('script', ['-qfec', `stty cols ${columns} rows ${rows}; exec ${quoted}`, '/dev/null'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...inherited, TERM: 'xterm-256color', ...env },
    })
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output += text
    })
    this.finished = new Promise((resolve) => this.#process.once('close', resolve))
  }

  /** The picture that is drawn now, line by line, without colours. */
  get screen(): string[] {
    const frame =
      this.output
        .split(`${ESC}[H`)
        .slice(1)
        .findLast((text) => text.includes(`${ESC}[J`)) ?? ''
    return frame.replace(ORDERS, '').split('\r\n')
  }

  async shows(pattern: RegExp): Promise<string[]> {
    await until(() => pattern.test(this.screen.join('\n')), `${pattern} was drawn: ${this.screen.join('\n')}`, SOON_MS)
    return this.screen
  }

  type(keys: string): void {
    this.#process.stdin?.write(keys)
  }

  async close(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.finished
  }
}
