import { InvalidError } from '@leasehold/core'
import { Argument, Command } from 'commander'
import { numberOf } from '../argument-parsers.js'
import { print, printJson, table } from '../output.js'
import { urlOf } from '../service-client.js'

interface SqlOptions {
  readonly schema?: string
  readonly epoch?: number
  readonly json?: boolean
}

interface EpochOptions {
  readonly url?: string
  readonly json?: boolean
}

const EPOCH_MAX = 32_767

/** `engines sql postgres`, `engines epoch N`: commands for operators of an engine that is not a Leasehold service. */
export function enginesCommand(): Command {
  const engines = new Command('engines').description('lock state in a database: its tables and its epoch')
  engines
    .command('sql')
    .addArgument(new Argument('<engine>', 'the engine').choices(['postgres']))
    .description('print the migration for lock state in a database, which also upgrades tables of an older version')
    .option('--schema <name>', 'the schema, if not leasehold')
    .option('--epoch <n>', 'first epoch; above that of the service it replaces', numberOf('epoch', 1, EPOCH_MAX))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ leasehold engines sql postgres | psql -1 -v ON_ERROR_STOP=1 "$DATABASE_URL"')
    .action(async (engine: string, { json, ...options }: SqlOptions) => {
      const { postgresSql } = await import('@leasehold/engines/postgres')
      const sql = postgresSql(options)
      if (json === true) printJson({ engine, sql })
      else print(sql.trimEnd())
    })
  engines
    .command('epoch')
    .argument('<n>', 'the epoch; above every epoch ever used', numberOf('epoch', 1, EPOCH_MAX))
    .description('start a new epoch, after a failover that may have lost data or after a restore')
    .option('--url <url>', 'postgres://… or etcd://… (env LEASEHOLD_URL)')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ leasehold engines epoch 7 --url postgres://localhost/shop')
    .action(async (epoch: number, options: EpochOptions) => {
      const url = urlOf(options)
      if (/^etcd(\+tls)?:/.test(url)) return raiseInEtcd(url, epoch, options)
      if (!/^postgres(ql)?:/.test(url)) {
        const hint = 'for a service, use restore --epoch or serve --epoch'
        throw new InvalidError('engines epoch works on postgres://… and etcd://… only', { hint })
      }
      const { raiseEpoch } = await import('@leasehold/engines/postgres')
      const { before } = await raiseEpoch(url, epoch)
      if (options.json === true) printJson({ epoch, before })
      else print(`epoch ${epoch} has begun (it was ${before}); all sessions and ordinary holds have ended`)
    })
  return engines
}

async function raiseInEtcd(url: string, epoch: number, { json }: EpochOptions): Promise<void> {
  const { raiseEpoch } = await import('@leasehold/engines/etcd')
  const { before, sessions, kept } = await raiseEpoch(url, epoch)
  if (json === true) {
    const rows = kept.map((one) => ({ names: one.names, before: String(one.before), id: String(one.id) }))
    return printJson({ epoch, before, sessions, kept: rows })
  }
  print(`epoch ${epoch} has begun (it was ${before ?? 'none'}); ${sessions} sessions and all ordinary holds have ended`)
  if (kept.length === 0) return
  print('persistent holds, which continue:')
  const rows = kept.map((one) => [one.names.join(', '), String(one.before), String(one.id)])
  print(table(['LOCKS', 'ID BEFORE', 'ID NOW'], rows))
}
