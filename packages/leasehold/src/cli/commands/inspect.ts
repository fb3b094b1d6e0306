import { Command } from 'commander'
import { duration, print, printJson } from '../output.js'
import { dataText, heldJson, type Listing, listing, modeText, pendingJson } from '../rows.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service.js'

/** `inspect NAME`: everything about one lock. */
export function inspectCommand(): Command {
  return serviceCommand(new Command('inspect').argument('<name>', 'the lock'))
    .description('show one lock: holders, tokens, sessions, queue, delays')
    .addHelpText('after', '\nExample:\n  $ leasehold inspect billing/invoice-42')
    .action(async (name: string, options: ServiceOptions) => {
      const found = await withLocks(options, (locks) => listing(locks, { name }))
      if (options.json === true) {
        const { delays, sessions } = found
        const held = found.held.map(heldJson)
        return printJson({ name, held, pending: found.pending.map(pendingJson), delays, sessions })
      }
      print(description(name, found))
    })
}

function description(name: string, { held, pending, delays }: Listing): string {
  const lines = [name]
  if (held.length === 0) lines.push('  free')
  for (const row of held) {
    const own = row.locks.find((lock) => lock.name === name)
    if (own === undefined) continue
    lines.push(
      `  held    ${modeText(own.mode)}, token ${own.token}${own.slot === undefined ? '' : `, slot ${own.slot}`}`,
    )
    lines.push(`    by    ${row.client || '(no name)'}, session ${row.session ?? 'none: persistent'}`)
    lines.push(
      `    for   ${duration(row.ageMs)}, ${row.remainingMs === undefined ? 'until released' : `${duration(row.remainingMs)} left without a renewal`}`,
    )
    lines.push(`    hold  ${row.id}`)
    const others = row.locks.filter((lock) => lock.name !== name).map((lock) => lock.name)
    if (others.length > 0) lines.push(`    with  ${others.join(', ')}`)
    if (row.data.length > 0) lines.push(`    data  ${dataText(row.data)}`)
  }
  for (const [index, row] of pending.entries()) {
    const mode = row.locks.find((lock) => lock.name === name)?.mode
    const end = row.remainingMs === undefined ? 'without end' : `for ${duration(row.remainingMs)} more`
    const what = mode === undefined ? '' : `${modeText(mode)}, `
    lines.push(`  queue ${index + 1} ${what}${row.client || '(no name)'}, since ${duration(row.waitingMs)}, ${end}`)
  }
  for (const delay of delays) lines.push(`  delay   blocked for ${duration(delay.remainingMs)} after a lost hold`)
  return lines.join('\n')
}
