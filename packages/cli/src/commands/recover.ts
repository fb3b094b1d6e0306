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

/** `recover`: the last resort when a cluster has lost its majority for good. */
export function recoverCommand(): Command {
  return new Command('recover')
    .description('make a service of one from the folder of a member whose cluster has lost its majority for good')
    .requiredOption('--data <dir>', 'the folder of the member that is furthest; no service may use it')
    .option('--force-single', 'yes, make it a service of one; needed')
    .option('--epoch <n>', 'above every epoch that was ever used; needed', numberOf('the epoch', 1, EPOCH_MAX))
    .option('--take-over', 'take the folder from an owner on another machine that you know is dead')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
What may be lost: everything that was acknowledged by the lost members and had not reached this one. Compare the survivors
with leasehold verify, and take the one with the highest term, and among those the highest entry. All sessions, holds and
waiters end; persistent holds stay, under new ids. Stop the other survivors first and never start them again with their
old folders: add them as new members, empty. The old files are kept in the folder before-epoch-N.

Example:
  $ leasehold recover --force-single --data ./data --epoch 3`,
    )
    .action(async ({ data, epoch, forceSingle, takeOver, json }: Options) => {
      if (forceSingle !== true) {
        throw new InvalidError('recover needs --force-single: it may lose what other members had acknowledged', {
          hint: 'if a majority can still be started, start it instead; leasehold recover --help tells what is lost',
        })
      }
      const { recoverFolder } = await import('@leasehold/replica/node')
      const report = await withProgress({ json }, ({ step: steps }) =>
        recoverFolder({ dir: data, epoch, takeOver: takeOver === true, progress: steps }),
      )
      if (json === true) return printJson({ data, ...report })
      print(`${data} is now a service of one, as member ${report.member} of a new cluster`)
      print(
        `it has everything up to entry ${report.lastIndex} of term ${report.lastTerm}; what others had beyond that is lost`,
      )
      for (const line of [...epochLines(report.epoch, report.known), ...holdLines(report.holds)]) print(line)
      print(`the old files are in ${report.keptIn}`)
      return print('the other members must never be started with their old folders again')
    })
}
