import { Command } from 'commander'
import { outColours } from '../colours.js'
import { live, type View } from '../live/live-view.js'
import { duration, print, printJson } from '../output.js'
import { after, dataText, heldJson, type Listing, listing, modeText, pendingJson } from '../listing.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'
import { cut, harmless } from '../terminal-text.js'
import { dimTokens } from '../tokens.js'

/** `inspect NAME`: shows everything about one lock. */
export function inspectCommand(): Command {
  return serviceCommand(new Command('inspect').argument('<name>', 'the lock'))
    .description('show one lock: holders, tokens, sessions, queue, delays')
    .option('--live', 'keep showing it: updated in place on a terminal, otherwise printed again after every change')
    .addHelpText(
      'after',
      '\nExamples:\n  $ leasehold inspect billing/invoice-42\n  $ leasehold inspect billing/invoice-42 --live',
    )
    .action(async (name: string, options: ServiceOptions & { live?: boolean }) => {
      if (options.live === true) return await live(options, view(name))
      const found = await withLocks(options, (locks) => listing(locks, { name }))
      if (options.json === true) return printJson(json(name, found))
      print([harmless(name), ...dimTokens(description(name, found, 0))].join('\n'))
    })
}

function view(name: string): View {
  return {
    title: `leasehold inspect ${name}`,
    query: { name },
    lines: ({ found }, agoMs, width) =>
      Number.isFinite(width)
        ? dimTokens(description(name, found, agoMs).map((line) => cut(line, width))).map(painted)
        : description(name, found, agoMs),
    summary: ({ found: { held, pending } }) => (held.length === 0 ? 'free' : `held, queue of ${pending.length}`),
    json: ({ found }) => json(name, found),
  }
}

function json(name: string, { held, pending, delays, sessions }: Listing): object {
  return { name, held: held.map(heldJson), pending: pending.map(pendingJson), delays, sessions }
}

/** Colours the first word of a line. */
function painted(line: string): string {
  return line.replace(/^ {2}(free|held|queue|delay)/, (start, word: string) => {
    if (word === 'held') return outColours.green(start)
    return word === 'free' ? outColours.dim(start) : outColours.yellow(start)
  })
}

function description(name: string, { held, pending, delays }: Listing, agoMs: number): string[] {
  const lines: string[] = []
  if (held.length === 0) lines.push('  free')
  for (const row of held) {
    const own = row.locks.find((lock) => lock.name === name)
    if (own === undefined) continue
    const slot = own.slot === undefined ? '' : `, slot ${own.slot}`
    lines.push(`  held    ${modeText(own.mode)}, token ${own.token}${slot}`)
    lines.push(`    by    ${row.client || '(no name)'}, session ${row.session ?? 'none: persistent'}`)
    const end =
      row.remainingMs === undefined
        ? 'until released'
        : `${duration(after(row.remainingMs, agoMs))} left without a renewal`
    lines.push(`    for   ${duration(row.ageMs + agoMs)}, ${end}`)
    lines.push(`    hold  ${row.id}`)
    const others = row.locks.filter((lock) => lock.name !== name).map((lock) => lock.name)
    if (others.length > 0) lines.push(`    with  ${others.join(', ')}`)
    if (row.data.length > 0) lines.push(`    data  ${dataText(row.data)}`)
  }
  for (const [index, row] of pending.entries()) {
    const mode = row.locks.find((lock) => lock.name === name)?.mode
    const end = row.remainingMs === undefined ? 'unlimited' : `for ${duration(after(row.remainingMs, agoMs))} more`
    const what = mode === undefined ? '' : `${modeText(mode)}, `
    const since = duration(row.waitingMs + agoMs)
    lines.push(`  queue ${index + 1} ${what}${row.client || '(no name)'}, since ${since}, ${end}`)
  }
  for (const delay of delays) {
    lines.push(`  delay   blocked for ${duration(after(delay.remainingMs, agoMs))} after a lost hold`)
  }
  return lines.map(harmless)
}
