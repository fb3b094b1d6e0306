import type { GuardKind } from '@leasehold/fence'
import { Command } from 'commander'
import { print, printJson } from '../output.js'

/** `guard sql KIND`: the migration that a guard's tables need. */
export function guardCommand(): Command {
  const guard = new Command('guard').description('what a resource needs to check fencing tokens')
  guard
    .command('sql')
    .argument('<kind>', 'pg or sqlite')
    .description('print the migration for the guard of a database')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ leasehold guard sql pg | psql "$DATABASE_URL"')
    .action(async (kind: string, options: { json?: boolean }) => {
      const { guardSql } = await import('@leasehold/fence/migrations')
      // An unknown kind is refused there, with those that exist.
      const sql = guardSql(kind as GuardKind)
      if (options.json === true) printJson({ kind, sql })
      else print(sql.trimEnd())
    })
  return guard
}
