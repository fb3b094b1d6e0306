import { NotHolderError } from '@leasehold/core'
import { Command } from 'commander'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'

/** `steal NAME --reason TEXT`: ends the holds of a lock against their owners' will. */
export function stealCommand(): Command {
  return serviceCommand(new Command('steal').argument('<name>', 'the lock'))
    .description("end a lock's hold against its owner's will")
    .requiredOption('--reason <text>', 'shown to the holder and in the events')
    .addHelpText(
      'after',
      `
The holder is told, but may go on for a moment: only a guard stops its writes.

Example:
  $ leasehold steal nightly-report --reason 'host is being repaired'`,
    )
    .action(async (name: string, options: ServiceOptions & { reason: string }) => {
      const { stolen } = await withLocks(options, (locks) => locks.steal(name, { reason: options.reason }))
      if (stolen === 0) throw new NotHolderError(`nobody holds ${JSON.stringify(name)}`)
      if (options.json === true) printJson({ name, stolen })
      else print(`stolen: ${name}${stolen > 1 ? `, ${stolen} holds` : ''}`)
    })
}
