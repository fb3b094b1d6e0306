import { countsOf } from '@leasehold/core'
import { Command } from 'commander'
import { downloadBackup, type DownloadOptions } from '../backup/download.js'
import { count, size } from '../backup/summary.js'
import { print, printJson } from '../output.js'
import { withProgress } from '../progress.js'
import { serviceCommand } from '../service-client.js'

/** `backup FILE`: writes the state of the service into one file. */
export function backupCommand(): Command {
  return serviceCommand(new Command('backup').argument('<file>', 'the file to write'))
    .description('write the whole state of the service to a file')
    .option('--stale', 'back up the state of one member, without a quorum')
    .option('--force', 'replace the file if it exists')
    .addHelpText(
      'after',
      `
The backup is a consistent snapshot with everything that was acknowledged before. The file contains the secrets of
holds: protect it like the data folder. Restore it with: leasehold restore

Example:
  $ leasehold backup locks.backup`,
    )
    .action(async (file: string, options: DownloadOptions) => {
      const { header, state, bytes } = await withProgress(options, ({ step }) =>
        downloadBackup(file, options, (got, total) => step(`${size(got)} of ${size(total)}`, got, total)),
      )
      const counts = countsOf(state)
      const { cluster, epoch, index, member, read, hash } = header
      if (options.json === true) return printJson({ file, bytes, cluster, epoch, index, member, read, hash, counts })
      const what = [count(counts.sessions, 'session'), count(counts.holds, 'hold'), count(counts.registers, 'register')]
      print(`${file}: epoch ${epoch}, entry ${index}, ${size(bytes)} (${what.join(', ')})`)
      if (read === 'stale') print(`it is the state of ${member}: without a quorum, newer entries may be missing`)
    })
}
