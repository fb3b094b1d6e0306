import { InvalidError } from '@leasehold/core'
import { type Command, CommanderError } from 'commander'
import { exitCodeOf, report } from './error-report.js'
import { createProgram } from './program.js'

/** Exit code of wrong usage, as in sysexits.h. */
const EXIT_USAGE = 64

/** Runs the command line; never rejects. Returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  process.stdout.on('error', onPipeError)
  const outcome = { code: 0 }
  const json = asksForJson(args)
  const program = createProgram(outcome)
  // What commander would say for people, a program gets as the one JSON line of any failure.
  if (json) silence(program)
  try {
    await program.parseAsync(args, { from: 'user' })
    return outcome.code
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      report(error, json)
      return exitCodeOf(error)
    }
    if (error.exitCode === 0) return 0
    if (json) report(new InvalidError(error.message.replace(/^error: /, ''), { hint: 'see --help' }), json)
    return EXIT_USAGE
  }
}

/** Runs the command line, and ends the process with its exit code. */
export async function run(args: readonly string[]): Promise<void> {
  const code = await main(args)
  // All output is written: a connection to a service that no longer answers must not keep this process alive.
  process.stdout.write('', () => process.exit(code))
}

/** What stands behind `--` is for the command that is run. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).includes('--json')
}

function silence(command: Command): void {
  command.configureOutput({ writeErr: () => {} })
  for (const child of command.commands) silence(child)
}

/** The reader of our output has gone (`leasehold ls | head -1`): nobody is left to tell. */
function onPipeError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
}
