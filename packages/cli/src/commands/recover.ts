import { EPOCH_MAX, InvalidError } from '@leasehold/core'
import { Command } from 'commander'
import { epochLines, holdLines } from '../backup/summary.js'
import { numberOf } from '../argument-parsers.js'
import { print, printJson } from '../output.js'
import { withProgress } from '../progress.js'

interface Options {
  readonly data: string
  readonly epoch?: number
  readonly forceSingle?: boolean
  readonly takeOver?: boolean
  readonly json?: boolean
}

/** `recover`: makes a service of one from a member of a cluster that has permanently lost its majority. */
export function recoverCommand(): Command {
  return new Command('recover')
    .description('make a service of one from a member whose cluster has permanently lost its majority')
    .requiredOption('--data <dir>', 'data folder of the most up-to-date member; no service may use it')
    .option('--force-single', 'confirm that it becomes a service of one; required')
    .option('--epoch <n>', 'the new epoch; above every epoch ever used; required', numberOf('the epoch', 1, EPOCH_MAX))
    .option('--take-over', 'take the folder from an owner on another machine that you know is dead')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Entries that the lost members have acknowledged and that have not reached this one are lost. Compare the survivors with
leasehold verify, and choose the one with the highest term, and among those the highest entry. All sessions, holds and
waiters end; persistent holds continue, under new ids. Stop the other survivors first, and never start them again with
their old folders: add them as new, empty members. The old files are kept in the folder before-epoch-N.

Example:
  $ leasehold recover --force-single --data ./data --epoch 3`,
    )
    .action(async ({ data, epoch, forceSingle, takeOver, json }: Options) => {
      if (forceSingle !== true) {
        throw new InvalidError('recover needs --force-single: it may lose what other members had acknowledged', {
          hint: 'if a majority can still be started, start it instead; leasehold recover --help explains what is lost',
        })
      }
      const { recoverFolder } = await import('@leasehold/replica/node')
      const report = await withProgress({ json }, ({ step: steps }) =>
        recoverFolder({ dir: data, epoch, takeOver: takeOver === true, progress: steps }),
      )
      if (json === true) return printJson({ data, ...report })
      print(`${data} is now a service of one, as member ${report.member} of a new cluster`)
      print(
        `it has all entries up to ${report.lastIndex} of term ${report.lastTerm}; later entries of other members are lost`,
      )
      for (const line of [...epochLines(report.epoch, report.known), ...holdLines(report.holds)]) print(line)
      print(`the old files are in ${report.keptIn}`)
      return print('the other members must never be started with their old folders again')
    })
}
