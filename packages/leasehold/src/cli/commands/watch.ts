import { Command } from 'commander'
import pc from 'picocolors'
import type { WatchEvent } from '../../locks.js'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service.js'

/** `watch [PREFIX]`: events as they happen, until interrupted. */
export function watchCommand(): Command {
  return serviceCommand(new Command('watch').argument('[prefix]', 'only locks and registers below this path'))
    .description('print events as they happen, one per line')
    .option('--from <cursor>', 'continue after this event (the cursor of an earlier line)')
    .addHelpText('after', '\nExample:\n  $ leasehold watch billing --json')
    .action(async (prefix: string | undefined, options: ServiceOptions & { from?: string }) => {
      await withLocks(options, async (locks) => {
        const where = prefix === undefined ? {} : { prefix }
        const from = options.from === undefined ? {} : { from: options.from }
        for await (const event of locks.watch({ ...where, ...from })) {
          if (options.json === true) printJson(event)
          else print(`${pc.dim(new Date().toISOString().slice(11, 23))} ${sentence(event)}`)
        }
      })
    })
}

/** One event as a line for people. */
export function sentence(event: WatchEvent): string {
  switch (event.kind) {
    case 'held':
      return `${pc.green('held')}      ${event.locks.map((lock) => `${lock.name} (token ${lock.token})`).join(', ')} by ${event.client || event.session}`
    case 'freed': {
      const why = [event.reason, event.actor, event.text].filter((part) => part !== '').join(', ')
      return `${pc.yellow('freed')}     ${event.locks.map((lock) => lock.name).join(', ')}: ${why}`
    }
    case 'queued':
      return `queued    ${event.names.join(', ')} for session ${event.session}`
    case 'unqueued':
      return `unqueued  ${event.names.join(', ')} for session ${event.session}: ${event.reason}`
    case 'sessionOpened':
      return `session   ${event.session} opened by ${event.client || '(no name)'}`
    case 'sessionEnded':
      return `session   ${event.session} ended: ${event.reason}`
    case 'put':
      return `put       ${event.key} is version ${event.version}`
    case 'deleted':
      return `deleted   ${event.key}, version ${event.version}`
  }
}
