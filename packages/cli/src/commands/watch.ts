import { setTimeout as sleep } from 'node:timers/promises'
import { EpochChangedError, UnavailableError, WatchError } from '@leasehold/core'
import { Command } from 'commander'
import type { Locks, WatchEvent } from 'leasehold'
import { outColours } from '../colours.js'
import { clock, EVENT_HEADINGS, eventCells, paintOf, type EventRow, eventRow } from '../live/events.js'
import { type Lost, reasonOf } from '../live/refresh.js'
import { clipped, drawing, headLine, noteConnection, statusLine } from '../live/live-view.js'
import { canDraw, type Size } from '../live/screen.js'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand, urlOf, withLocks } from '../service-client.js'
import { harmless } from '../terminal-text.js'
import { tableLines } from '../table.js'
import { dimTokens, TokenTrail } from '../tokens.js'

/** Bound on the events of the live table; more than a tall terminal has lines. */
const KEPT = 500
/** Pause before a failed watch is restarted. */
const RESTART_MS = 500
const EVENT_WIDTH = 10

interface Options extends ServiceOptions {
  readonly from?: string
  readonly live?: boolean
}

/** `watch [PREFIX]`: prints events as they happen, until interrupted. */
export function watchCommand(): Command {
  return serviceCommand(new Command('watch').argument('[prefix]', 'only locks and registers below this path'))
    .description('print events as they happen, one per line')
    .option('--from <cursor>', 'continue after this event (the cursor of an earlier line)')
    .option('--live', 'show the newest events as a table, updated in place; without a terminal, print lines')
    .addHelpText(
      'after',
      `
After a lost connection, the watch reconnects and misses no event. If the service no longer has all of them, the watch
ends with exit code 1 (gap): read the state again, and watch from there. The live table shows the gap and continues.

Examples:
  $ leasehold watch billing --json
  $ leasehold watch --live`,
    )
    .action(async (prefix: string | undefined, options: Options) => {
      const where = {
        ...(prefix === undefined ? {} : { prefix }),
        ...(options.from === undefined ? {} : { from: options.from }),
      }
      await withLocks(options, async (locks) => {
        if (options.live !== true || options.json === true || !canDraw()) return await lines(locks, where, options)
        await locks.connect()
        await new LiveEvents(`leasehold watch${prefix === undefined ? '' : ` ${prefix}`}`, options).run(locks, where)
      })
    })
}

type Where = { readonly prefix?: string; readonly from?: string }

async function lines(locks: Locks, where: Where, { json }: Options): Promise<void> {
  const off = onConnection(locks, noteConnection)
  const trail = new TokenTrail()
  try {
    for await (const event of locks.watch(where)) {
      if (json === true) printJson(event)
      else print(trail.dim(sentence(event)))
    }
  } finally {
    off()
  }
}

/** Formats one event as a line. */
function sentence(event: WatchEvent): string {
  const { at, event: kind, name, actor, what } = eventRow(event, new Date())
  const rest = [name, actor, what].filter((part) => part !== '').join('  ')
  return `${outColours.dim(clock(at))}  ${paintOf(kind)(kind.padEnd(EVENT_WIDTH))}${harmless(rest)}`
}

/** Calls `notify` when the connection is lost, and when it is back. */
function onConnection(locks: Locks, notify: (lost: Lost | undefined) => void): () => void {
  let lost: Lost | undefined
  return locks.on('status', (status) => {
    if (status.state === 'connected' && lost !== undefined) {
      lost = undefined
      notify(undefined)
    } else if (status.state === 'connecting' && status.lastError !== undefined && lost === undefined) {
      lost = { since: performance.now(), why: reasonOf(status.lastError) }
      notify(lost)
    }
  })
}

/** The newest events as a table, the newest at the bottom. */
class LiveEvents {
  readonly #title: string
  readonly #options: Options
  readonly #kept: EventRow[] = []
  #count = 0
  #lost: Lost | undefined

  constructor(title: string, options: Options) {
    this.#title = title
    this.#options = options
  }

  async run(locks: Locks, where: Where): Promise<void> {
    await drawing(
      (size) => this.#frame(size),
      async (redraw, signal) => {
        const off = onConnection(locks, (lost) => {
          this.#lost = lost
          redraw()
        })
        try {
          await this.#watch(locks, { ...where, signal })
        } finally {
          off()
        }
      },
    )
  }

  /** Shows a gap, a restore or a long outage as an event, and restarts the watch. */
  async #watch(locks: Locks, where: Where & { readonly signal: AbortSignal }): Promise<void> {
    let from = where.from
    while (!where.signal.aborted) {
      try {
        for await (const event of locks.watch({ ...where, ...(from === undefined ? {} : { from }) })) {
          from = event.cursor
          this.#add(eventRow(event, new Date()))
        }
      } catch (error) {
        if (where.signal.aborted) return
        if (error instanceof WatchError || error instanceof EpochChangedError) {
          from = undefined
          this.#add({ at: new Date(), event: 'gap', name: '', actor: '', what: `events were missed: ${error.message}` })
        } else if (!(error instanceof UnavailableError)) throw error
        await sleep(RESTART_MS, undefined, { signal: where.signal }).catch(() => {})
      }
    }
  }

  /** Adds an event, which the next redraw shows. */
  #add(event: EventRow): void {
    this.#count++
    this.#kept.push(event)
    if (this.#kept.length > KEPT) this.#kept.shift()
  }

  #frame({ columns, rows }: Size): string[] {
    const room = Math.max(1, rows - 4)
    const summary = `${this.#count} ${this.#count === 1 ? 'event' : 'events'}`
    const body =
      this.#count === 0
        ? [outColours.dim('nothing has happened yet')]
        : dimTokens(tableLines(EVENT_HEADINGS, this.#kept.slice(-room).map(eventCells), columns))
    return [
      headLine(this.#title, summary, urlOf(this.#options), columns),
      '',
      ...clipped(body, rows - 3, columns),
      statusLine(this.#lost, columns),
    ]
  }
}
