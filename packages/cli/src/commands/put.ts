import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { versionOf } from '../argument-parsers.js'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand, withLocks } from '../service-client.js'

const STDIN = 0

/** `put KEY VALUE`: writes a register, optionally only over a given version. */
export function putCommand(): Command {
  return serviceCommand(
    new Command('put').argument('<key>', 'the register').argument('<value>', 'its value; - reads stdin'),
  )
    .description('write a register')
    .option('--if-version <version>', 'only if the register has this version; 0: only if it does not exist', versionOf)
    .addHelpText(
      'after',
      `
Example:
  $ leasehold put config/flags '{"dark":true}' --if-version 0`,
    )
    .action(async (key: string, value: string, options: ServiceOptions & { ifVersion?: bigint }) => {
      const bytes = value === '-' ? readFileSync(STDIN) : Buffer.from(value)
      const ifVersion = options.ifVersion === undefined ? {} : { ifVersion: options.ifVersion }
      const { version } = await withLocks(options, (locks) => locks.register(key).put(new Uint8Array(bytes), ifVersion))
      if (options.json === true) printJson({ key, version })
      else print(`version ${version}`)
    })
}
