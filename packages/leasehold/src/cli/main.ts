import { CommanderError } from 'commander'
import { exitCodeOf, report } from './failure.js'
import { createProgram } from './program.js'

/** Exit code of wrong usage, as in sysexits.h. */
const EXIT_USAGE = 64

/** Runs the command line; never rejects. Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  process.stdout.on('error', onPipeError)
  const outcome = { code: 0 }
  try {
    await createProgram(outcome).parseAsync(args, { from: 'user' })
    return outcome.code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE
    report(error, args.includes('--json'))
    return exitCodeOf(error)
  }
}

/** The reader of our output has gone (`leasehold ls | head -1`): nobody is left to tell. */
function onPipeError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
}
