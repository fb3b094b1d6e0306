import { Command } from 'commander'
import type { Outcome } from '../outcome.js'
import { exploreSubcommand, replaySubcommand } from './lab-explore.js'
import { labServeSubcommand } from './lab-serve.js'
import { listSubcommand, runSubcommand } from './lab-run.js'

/** `lab`: the deterministic world. */
export function labCommand(outcome: Outcome): Command {
  return new Command('lab')
    .description('the real code in a simulated world: failures that anyone can run')
    .addCommand(listSubcommand())
    .addCommand(runSubcommand(outcome))
    .addCommand(exploreSubcommand(outcome))
    .addCommand(replaySubcommand(outcome))
    .addCommand(labServeSubcommand())
}
