import { EPOCH_MAX } from '@leasehold/core'
import { Command } from 'commander'
import { epochLines, holdLines } from '../backup/summary.js'
import { numberOf } from '../argument-parsers.js'
import { print, printJson } from '../output.js'
import { withProgress } from '../progress.js'

interface Options {
  readonly data: string
  readonly epoch?: number
  readonly name?: string
  readonly json?: boolean
}

/** `restore FILE`: makes a new service from a backup, in a higher epoch. */
export function restoreCommand(): Command {
  return new Command('restore')
    .argument('<file>', 'a file written by leasehold backup')
    .description('make a new service of one from a backup, in a higher epoch')
    .requiredOption('--data <dir>', 'data folder of the new service; empty or missing')
    .option('--epoch <n>', 'the new epoch; above every epoch ever used; required', numberOf('the epoch', 1, EPOCH_MAX))
    .option('--name <name>', 'name of the new member', 'n1')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The new service has its own cluster id. In the higher epoch, all sessions, holds and waiters of the backup have ended, all
new tokens are above the old ones, and old clients fail with epoch-changed. Persistent holds continue, under new ids.
Every restore is recorded in FILE.epochs; keep that file beside the backup. Without --epoch, the known epochs are printed.

Examples:
  $ leasehold restore locks.backup --data ./restored --epoch 2
  $ leasehold serve --data ./restored`,
    )
    .action(async (file: string, { data, epoch, name, json }: Options) => {
      const { restoreBackup } = await import('@leasehold/replica/node')
      const report = await withProgress({ json }, ({ step: steps }) =>
        restoreBackup({ file, dir: data, epoch, progress: steps, ...(name === undefined ? {} : { name }) }),
      )
      if (json === true) return printJson({ data, ...report })
      const { backup } = report
      print(
        `${data} has the state of entry ${backup.index} of epoch ${backup.epoch}, as member ${report.member} of a new service`,
      )
      for (const line of [...epochLines(report.epoch, report.known), ...holdLines(report.holds)]) print(line)
      if (backup.read === 'stale') print('the backup was made without a quorum: newer entries may be missing')
      print(`start it with: leasehold serve --data ${data}`)
    })
}
