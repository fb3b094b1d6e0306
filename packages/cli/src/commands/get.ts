import { Command } from 'commander'
import { note, printJson } from '../output.js'
import type { Outcome } from '../outcome.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'

const EXIT_MISSING = 1

/** `get KEY`: prints the value of a register, byte for byte. */
export function getCommand(outcome: Outcome): Command {
  return serviceCommand(new Command('get').argument('<key>', 'the register'))
    .description('print the value of a register; exit 1 if there is none')
    .addHelpText('after', '\nThe version is printed to stderr.\n\nExample:\n  $ leasehold get config/flags')
    .action(async (key: string, options: ServiceOptions) => {
      const found = await withLocks(options, (locks) => locks.register(key).get())
      if (!found) outcome.code = EXIT_MISSING
      if (options.json === true) {
        printJson(
          found
            ? { key, version: found.version, value: Buffer.from(found.bytes).toString('utf8') }
            : { key, version: null },
        )
      } else if (found) {
        note(`version ${found.version}`)
        process.stdout.write(found.bytes)
        if (process.stdout.isTTY) process.stdout.write('\n')
      } else note(`there is no register ${JSON.stringify(key)}`)
    })
}
