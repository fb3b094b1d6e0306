import { Command } from 'commander'
import { InvalidError, parseToken } from '@leasehold/core'
import { callService, isService } from '../call-service.js'
import { duration, print, printJson, table } from '../output.js'
import { listing } from '../listing.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'

/** `session ls` and `session end`: lists and ends sessions. */
export function sessionCommand(): Command {
  const session = new Command('session').description('list and end sessions')
  serviceCommand(session.command('ls'))
    .description('list sessions')
    .addHelpText('after', '\nExample:\n  $ leasehold session ls')
    .action(async (options: ServiceOptions) => {
      const { sessions } = await withLocks(options, (locks) => listing(locks, {}))
      if (options.json === true) return printJson({ sessions })
      if (sessions.length === 0) return print('no sessions')
      const rows = sessions.map((row) => [
        String(row.id),
        row.client || '(no name)',
        duration(row.ttlMs),
        duration(row.remainingMs),
        String(row.holds),
        String(row.waiters),
      ])
      print(table(['SESSION', 'CLIENT', 'TTL', 'LEFT', 'HOLDS', 'WAITS'], rows))
    })
  serviceCommand(session.command('end').argument('<session>', 'the id that ls shows'))
    .description('end a session: its holds and waits end')
    .option('--reason <text>', 'shown to the client and in the events', 'ended by an operator')
    .addHelpText('after', "\nExample:\n  $ leasehold session end 42 --reason 'host is down'")
    .action(async (id: string, options: ServiceOptions & { reason: string }) => {
      const { reason } = options
      if (!/^[1-9]\d{0,18}$/.test(id)) {
        throw new InvalidError(`${id} is not the id of a session`, {
          hint: 'an id is a decimal number: leasehold session ls shows them',
        })
      }
      if (isService(options)) await callService(options, '/v1/sessions/end', { session: id, reason })
      else await withLocks(options, (locks) => locks.endSession(parseToken(id), { reason }))
      if (options.json === true) printJson({ session: id, ended: true })
      else print(`ended: session ${id}`)
    })
  return session
}
