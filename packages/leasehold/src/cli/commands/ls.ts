import { Command } from 'commander'
import { duration, note, print, printJson, table } from '../output.js'
import { heldJson, type Listing, listing, modeText, pendingJson } from '../rows.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service.js'

/** `ls [PREFIX]`: who holds what, and who waits. */
export function lsCommand(): Command {
  return serviceCommand(new Command('ls').argument('[prefix]', 'only locks below this path'))
    .description('list locks with their holders and queues')
    .addHelpText(
      'after',
      `
A prefix matches whole path segments: account/1 does not cover account/10.

Example:
  $ leasehold ls billing --json | jq '.held[].client'`,
    )
    .action(async (prefix: string | undefined, options: ServiceOptions) => {
      const found = await withLocks(options, (locks) => listing(locks, prefix === undefined ? {} : { prefix }))
      if (options.json === true) {
        const { delays, more } = found
        return printJson({ held: found.held.map(heldJson), pending: found.pending.map(pendingJson), delays, more })
      }
      print(lockTable(found))
      if (found.more) note('there are more: ask for a prefix')
    })
}

function lockTable(found: Listing): string {
  const queues = new Map<string, number>()
  for (const row of found.pending) {
    for (const lock of row.locks) queues.set(lock.name, (queues.get(lock.name) ?? 0) + 1)
  }
  const rows = found.held.flatMap((row) =>
    row.locks.map((lock) => {
      const slot = lock.slot === undefined ? '' : ` #${lock.slot}`
      const left = row.remainingMs === undefined ? 'persistent' : duration(row.remainingMs)
      const queue = queues.get(lock.name) ?? 0
      return [
        lock.name,
        modeText(lock.mode) + slot,
        row.client,
        String(lock.token),
        duration(row.ageMs),
        left,
        String(queue),
      ]
    }),
  )
  const held = new Set(rows.map((row) => row[0]))
  for (const [name, count] of queues) if (!held.has(name)) rows.push([name, '-', '-', '-', '-', '-', String(count)])
  for (const delay of found.delays) {
    rows.push([delay.name, 'delay', '-', '-', '-', duration(delay.remainingMs), String(queues.get(delay.name) ?? 0)])
  }
  if (rows.length === 0) return 'no locks are held'
  rows.sort((a, b) => (a[0] as string).localeCompare(b[0] as string, 'en'))
  return table(['LOCK', 'MODE', 'HOLDER', 'TOKEN', 'AGE', 'LEFT', 'QUEUE'], rows)
}
