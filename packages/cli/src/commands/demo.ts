import { Command } from 'commander'
import { printJson } from '../output.js'
import type { DemoOptions } from '../demo/run-demo.js'
import type { Outcome } from '../outcome.js'

const EXIT_UNEXPECTED = 1

/** `demo`: shows why locks need fencing tokens, with real processes. */
export function demoCommand(outcome: Outcome): Command {
  return new Command('demo')
    .description('show with real processes how a paused lock holder loses an update, and how a guard prevents it')
    .option('--postgres <url>', 'keep the record in this PostgreSQL instead of a file')
    .option('--json', 'print the results as JSON')
    .addHelpText('after', '\nExit code 0 only if both halves end as expected.\n\nExample:\n  $ leasehold demo')
    .action(async (options: DemoOptions) => {
      // Loaded here, so that the other commands start without it.
      const { halfJson, runDemo } = await import('../demo/run-demo.js')
      const halves = await runDemo(options)
      const asExpected = halves.every((half) => half.asExpected)
      if (!asExpected) outcome.code = EXIT_UNEXPECTED
      const resource = options.postgres === undefined ? 'file' : 'postgres'
      if (options.json === true) printJson({ asExpected, resource, halves: halves.map(halfJson) })
    })
}
