import { Command } from 'commander'
import type { CommandIo, ExploreCommand } from '@leasehold/lab/fuzz/explore-command'
import { print } from '../output.js'
import type { Outcome } from '../outcome.js'

interface ReplayOptions {
  readonly seed?: string
  readonly profile?: string
  readonly members?: string
  readonly json?: boolean
}

const PROFILE_HELP = 'fault profile: swarm, liveness, storage, network, membership, holders or calm (default swarm)'

/** `lab explore`: runs random fault schedules over the real code. */
export function exploreSubcommand(outcome: Outcome): Command {
  return new Command('explore')
    .description('run the real code under random faults, seed by seed, until an invariant is violated')
    .requiredOption('--seeds <A..B>', 'the seeds')
    .option('--profile <name>', PROFILE_HELP)
    .option('--members <n>', 'members of the cluster (default: 3 or 5, depending on the seed)')
    .option('--state <file>', 'save the progress in this file, and resume from it')
    .option('--out <file>', 'file for the shrunk scenario (default lab-SEED.json)')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      '\nExit code 1, and a replay line, if an invariant is violated.\n\nExample:\n  $ leasehold lab explore --seeds 1..200 --profile swarm',
    )
    .action(async (options: ExploreCommand) => {
      const { exploreCommand } = await import('@leasehold/lab/fuzz/explore-command')
      outcome.code = await withStop((io) => exploreCommand(options, io))
    })
}

/** `lab replay`: repeats one seed, with its whole trace. */
export function replaySubcommand(outcome: Outcome): Command {
  return new Command('replay')
    .description('repeat one seed, or a scenario file of explore, and show its whole trace')
    .argument('[file]', 'a scenario file written by explore')
    .option('--seed <n>', 'the seed')
    .option('--profile <name>', PROFILE_HELP)
    .option('--members <n>', 'as in the original run')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExample:\n  $ leasehold lab replay --seed 42 --profile swarm')
    .action(async (file: string | undefined, options: ReplayOptions) => {
      const { replayCommand } = await import('@leasehold/lab/fuzz/explore-command')
      outcome.code = await withStop((io) => replayCommand(file === undefined ? options : { ...options, file }, io))
    })
}

/** Runs `work` so that the first signal ends it after the current seed. */
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
