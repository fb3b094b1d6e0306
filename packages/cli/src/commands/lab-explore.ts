import { Command } from 'commander'
import type { CommandIo, ExploreCommand } from '@leasehold/lab/explore/command'
import { print } from '../output.js'
import type { Outcome } from '../outcome.js'

interface ReplayOptions {
  readonly seed?: string
  readonly profile?: string
  readonly members?: string
  readonly json?: boolean
}

const PROFILE_HELP = 'what goes wrong: swarm, liveness, storage, network, membership, holders or calm (default swarm)'

/** `lab explore`: random fault schedules over the real code. */
export function exploreSubcommand(outcome: Outcome): Command {
  return new Command('explore')
    .description('run the real code under random faults, seed by seed, until something is broken')
    .requiredOption('--seeds <A..B>', 'seeds to run')
    .option('--profile <name>', PROFILE_HELP)
    .option('--members <n>', 'members of the cluster (default: 3 or 5, as the seed draws)')
    .option('--state <file>', 'keep the progress in this file, and go on from it')
    .option('--out <file>', 'where the shrunk scenario goes (default lab-SEED.json)')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      '\nExit code 1 and a line for the replay when an invariant is broken.\n\nExample:\n  $ leasehold lab explore --seeds 1..200 --profile swarm',
    )
    .action(async (options: ExploreCommand) => {
      const { exploreCommand } = await import('@leasehold/lab/explore/command')
      outcome.code = await withStop((io) => exploreCommand(options, io))
    })
}

/** `lab replay`: one seed again, with its whole trace. */
export function replaySubcommand(outcome: Outcome): Command {
  return new Command('replay')
    .description('run one seed, or a scenario file of explore, again and show everything that happens')
    .argument('[file]', 'a scenario file that explore has written')
    .option('--seed <n>', 'the seed')
    .option('--profile <name>', PROFILE_HELP)
    .option('--members <n>', 'as in the run that is replayed')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExample:\n  $ leasehold lab replay --seed 42 --profile swarm')
    .action(async (file: string | undefined, options: ReplayOptions) => {
      const { replayCommand } = await import('@leasehold/lab/explore/command')
      outcome.code = await withStop((io) => replayCommand(file === undefined ? options : { ...options, file }, io))
    })
}

/** The first signal ends the work after the present seed. */
async function withStop(work: (io: CommandIo) => Promise<number>): Promise<number> {
  let stopping = false
  const stop = (): void => {
    stopping = true
  }
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    const note = (line: string): void => void process.stderr.write(`${line}\n`)
    return await work({ print, note, stopping: () => stopping })
  } finally {
    process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop)
  }
}
