import { Command } from 'commander'
import type { SessionRow } from 'leasehold'
import { outColours } from '../colours.js'
import type { Picture } from '../live/refresh.js'
import { live, type View } from '../live/live-view.js'
import { duration, note, print, printJson, table } from '../output.js'
import { after, heldJson, type Listing, listing, modeText, pendingJson } from '../listing.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'
import { type Cell, type Heading, tableLines } from '../table.js'
import { tokenCells } from '../tokens.js'

const HEADINGS: readonly Heading[] = [
  'LOCK',
  'MODE',
  'HOLDER',
  { title: 'TOKEN', whole: true },
  'AGE',
  { title: 'LEFT', whole: true },
  'QUEUE',
]
/** Parts of the TTL. A client renews at a third of it: below a half, a renewal is late; below a fifth, the hold is about to expire. */
const LATE = 1 / 2
const NEARLY_EXPIRED = 1 / 5

/** `ls [PREFIX]`: lists locks with their holders and queues. */
export function lsCommand(): Command {
  return serviceCommand(new Command('ls').argument('[prefix]', 'only locks below this path'))
    .description('list locks with their holders and queues')
    .option('--live', 'keep showing them: updated in place on a terminal, otherwise printed again after every change')
    .addHelpText(
      'after',
      `
A prefix matches whole path segments: account/1 does not cover account/10.

Examples:
  $ leasehold ls billing --json | jq '.held[].client'
  $ leasehold ls --live`,
    )
    .action(async (prefix: string | undefined, options: ServiceOptions & { live?: boolean }) => {
      const query = prefix === undefined ? {} : { prefix }
      if (options.live === true) return await live(options, view(prefix, query))
      const found = await withLocks(options, (locks) => listing(locks, query))
      if (options.json === true) return printJson(json(found))
      const rows = lockRows(found)
      print(rows.length === 0 ? 'no locks are held' : table(HEADINGS, rows))
      if (found.more) note('there are more: give a prefix')
    })
}

function view(prefix: string | undefined, query: View['query']): View {
  return {
    title: `leasehold ls${prefix === undefined ? '' : ` ${prefix}`}`,
    query,
    lines: ({ found }, agoMs, width) => {
      const rows = lockRows(found, agoMs)
      return rows.length === 0 ? ['no locks are held'] : tableLines(HEADINGS, rows, width)
    },
    summary,
    json: ({ found }) => json(found),
  }
}

function summary({ found: { held, pending, more } }: Picture): string {
  return `${held.length}${more ? '+' : ''} held, ${pending.length} ${pending.length === 1 ? 'waits' : 'wait'}`
}

function json({ held, pending, delays, more }: Listing): object {
  return { held: held.map(heldJson), pending: pending.map(pendingJson), delays, more }
}

function lockRows(found: Listing, agoMs = 0): Cell[][] {
  const queues = new Map<string, number>()
  for (const row of found.pending) {
    for (const lock of row.locks) queues.set(lock.name, (queues.get(lock.name) ?? 0) + 1)
  }
  const queueOf = (name: string): Cell => {
    const length = queues.get(name) ?? 0
    return length === 0 ? '0' : { text: String(length), paint: outColours.cyan }
  }
  const sessions = new Map(found.sessions.map((session) => [session.id, session]))
  const tokenCell = tokenCells(found.held.flatMap((row) => row.locks.map((lock) => lock.token)))
  const rows: [string, ...Cell[]][] = found.held.flatMap((row) =>
    row.locks.map((lock): [string, ...Cell[]] => {
      const slot = lock.slot === undefined ? '' : ` #${lock.slot}`
      const left = leftCell(row.remainingMs, agoMs, row.session === undefined ? undefined : sessions.get(row.session))
      const { name } = lock
      return [
        name,
        modeText(lock.mode) + slot,
        row.client,
        tokenCell(lock.token),
        duration(row.ageMs + agoMs),
        left,
        queueOf(name),
      ]
    }),
  )
  const held = new Set(rows.map(([name]) => name))
  for (const name of queues.keys()) if (!held.has(name)) rows.push([name, '-', '-', '-', '-', '-', queueOf(name)])
  for (const { name, remainingMs } of found.delays) {
    rows.push([name, 'delay', '-', '-', '-', duration(after(remainingMs, agoMs)), queueOf(name)])
  }
  return rows.sort(([a], [b]) => a.localeCompare(b, 'en'))
}

/** Formats what is left of a lease: yellow if a renewal is late, red if it is about to expire. */
function leftCell(remainingMs: number | undefined, agoMs: number, session: SessionRow | undefined): Cell {
  if (remainingMs === undefined) return 'persistent'
  const left = after(remainingMs, agoMs)
  const text = duration(left)
  const part = session === undefined ? 1 : left / session.ttlMs
  if (part < NEARLY_EXPIRED) return { text, paint: outColours.red }
  return part < LATE ? { text, paint: outColours.yellow } : text
}
