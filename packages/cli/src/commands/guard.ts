import type { GuardKind, GuardSqlOptions } from '@leasehold/fence'
import { Argument, Command, Option } from 'commander'
import { print, printJson } from '../output.js'

/** `guard sql KIND`: prints the migration for the tables of a guard. */
export function guardCommand(): Command {
  const guard = new Command('guard').description('the tables of guards, which check fencing tokens')
  guard
    .command('sql')
    .addArgument(new Argument('<kind>', 'the database').choices(['pg', 'mysql', 'sqlite']))
    .description('print the migration for the guard of a database')
    .addOption(
      new Option('--form <form>', 'where the marks are stored; trigger: pg only')
        .choices(['table', 'column', 'trigger'])
        .default('table'),
    )
    .option('--on <table>', 'your table, for column and trigger')
    .option('--resource <template>', "the resource of a row, such as 'billing/{id}', for trigger")
    .option('--schema <schema>', "schema of the guard's tables")
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ leasehold guard sql pg | psql "$DATABASE_URL"')
    .action(async (kind: string, options: GuardSqlOptions & { json?: boolean }) => {
      const { guardSql } = await import('@leasehold/fence/migrations')
      const { json, ...rest } = options
      const sql = guardSql(kind as GuardKind, rest)
      if (json === true) printJson({ kind, sql })
      else print(sql.trimEnd())
    })
  return guard
}
