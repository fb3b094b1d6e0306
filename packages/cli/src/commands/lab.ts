import { Command } from 'commander'
import type { Outcome } from '../outcome.js'
import { exploreSubcommand, replaySubcommand } from './lab-explore.js'
import { labServeSubcommand } from './lab-serve.js'
import { listSubcommand, runSubcommand } from './lab-run.js'

/** `lab`: commands of the deterministic simulation. */
export function labCommand(outcome: Outcome): Command {
  return new Command('lab')
    .description('run the real code in a deterministic simulation, with reproducible failures')
    .addCommand(listSubcommand())
    .addCommand(runSubcommand(outcome))
    .addCommand(exploreSubcommand(outcome))
    .addCommand(replaySubcommand(outcome))
    .addCommand(labServeSubcommand())
}
