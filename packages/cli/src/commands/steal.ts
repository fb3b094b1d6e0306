import { NotHolderError } from '@leasehold/core'
import { Command } from 'commander'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'

/** `steal NAME --reason TEXT`: ends the holds of a lock without their owners. */
export function stealCommand(): Command {
  return serviceCommand(new Command('steal').argument('<name>', 'the lock'))
    .description('end the holds of a lock without their owners')
    .requiredOption('--reason <text>', 'shown to the holder and in the events')
    .addHelpText(
      'after',
      `
The holder is notified, but may continue for a moment: only a guard stops its writes.

Example:
  $ leasehold steal nightly-report --reason 'host is being repaired'`,
    )
    .action(async (name: string, options: ServiceOptions & { reason: string }) => {
      const { stolen } = await withLocks(options, (locks) => locks.steal(name, { reason: options.reason }))
      if (stolen === 0) throw new NotHolderError(`${JSON.stringify(name)} is not held`)
      if (options.json === true) printJson({ name, stolen })
      else print(`stolen: ${name}${stolen > 1 ? `, ${stolen} holds` : ''}`)
    })
}
