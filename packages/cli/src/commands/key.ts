import { parseDuration } from '@leasehold/core'
import { Command } from 'commander'
import { print, printJson, table } from '../output.js'

const DEFAULT_FILE = './leasehold-keys.json'

interface KeyOptions {
  readonly keys: string
  readonly json?: boolean
}

interface CreateOptions extends KeyOptions {
  readonly rule: readonly string[]
  readonly name: string
  readonly expires?: string
}

function keyFile(command: Command): Command {
  return command
    .option('--keys <file>', 'the file of keys that serve --keys reads', DEFAULT_FILE)
    .option('--json', 'print JSON')
}

/** `key create|ls|revoke`: manages the API keys of a service, in a file that every member has. */
export function keyCommand(): Command {
  const key = new Command('key').description('create, list and revoke API keys in the file that serve --keys reads')
  keyFile(key.command('create'))
    .description('create a key, print it once, and store its hash')
    .requiredOption(
      '--rule <rule...>',
      'permissions: PREFIX:VERB,VERB with the verbs acquire, read, steal, admin; * means all',
    )
    .option('--name <text>', 'name of the owner, for the audit log', '')
    .option('--expires <duration>', 'how long it is valid, such as 90d; default: unlimited')
    .addHelpText(
      'after',
      `
Example:
  $ leasehold key create --name 'billing worker' --rule 'billing:acquire,read'

A running service applies the change within a second. In a cluster, copy the file to every member.`,
    )
    .action(async ({ keys, rule, name, expires, json }: CreateOptions) => {
      const { createKey } = await import('@leasehold/server')
      const now = new Date()
      const end = expires === undefined ? undefined : new Date(now.getTime() + parseDuration(expires, 'expires'))
      const { text, entry } = createKey(keys, { name, rules: rule, expires: end }, now)
      if (json === true) printJson({ key: text, ...listed(entry) })
      else print(text)
    })
  keyFile(key.command('ls'))
    .description('list the keys, without their secrets')
    .addHelpText('after', '\nExample:\n  $ leasehold key ls')
    .action(async ({ keys: file, json }: KeyOptions) => {
      const { readKeys } = await import('@leasehold/server')
      const keys = readKeys(file).map(listed)
      if (json === true) return printJson({ keys })
      const rows = keys.map(({ id, name, rules, created, expires }) => [
        id,
        name,
        rules.join(' '),
        created,
        expires ?? 'never',
      ])
      return print(table(['ID', 'NAME', 'RULES', 'CREATED', 'EXPIRES'], rows))
    })
  keyFile(key.command('revoke').argument('<id>', 'the id that key ls shows'))
    .description('remove a key from the file: the service rejects it within a second')
    .addHelpText('after', '\nExample:\n  $ leasehold key revoke 0c9be1f2a377')
    .action(async (id: string, { keys, json }: KeyOptions) => {
      const { revokeKey } = await import('@leasehold/server')
      const entry = revokeKey(keys, id)
      if (json === true) printJson({ revoked: id })
      else print(`revoked ${id}${entry.name === '' ? '' : ` (${entry.name})`}`)
    })
  return key
}

function listed<T extends { readonly sha256: string }>({ sha256: _, ...rest }: T): Omit<T, 'sha256'> {
  return rest
}
