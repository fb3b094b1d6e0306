import { InvalidError } from '@leasehold/core'
import { type Command, CommanderError } from 'commander'
import { exitCodeOf, report } from './error-report.js'
import { createProgram } from './program.js'

/** The exit code of a usage error, as in sysexits.h. */
const EXIT_USAGE = 64

/** Runs the command line; never rejects. Returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  process.stdout.on('error', onPipeError)
  const outcome = { code: 0 }
  const json = hasJsonFlag(args)
  const program = createProgram(outcome)
  // With --json, a usage error is one JSON line, like any other failure.
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
  // A connection to a service that no longer responds must not keep this process alive.
  process.stdout.write('', () => process.exit(code))
}

/** Whether `--json` is given before `--`; the arguments behind it belong to the command of `run`. */
function hasJsonFlag(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).includes('--json')
}

function silence(command: Command): void {
  command.configureOutput({ writeErr: () => {} })
  for (const child of command.commands) silence(child)
}

/** Exits silently when the reader of the output has closed the pipe (`leasehold ls | head -1`). */
function onPipeError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
}
