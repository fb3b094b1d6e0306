import { ERRORS, LeaseholdError } from '@leasehold/core'
import pc from 'picocolors'

const EXIT_OTHER = 1

/** The exit code of an error, from the error table. */
export function exitCodeOf(error: unknown): number {
  return error instanceof LeaseholdError ? ERRORS[error.code].exit : EXIT_OTHER
}

/** Writes an error to stderr: one line and a hint for people, one JSON line with `json`. */
export function report(error: unknown, json: boolean): void {
  if (json) {
    process.stderr.write(`${JSON.stringify({ error: facts(error) })}\n`)
    return
  }
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${pc.red('leasehold:')} ${message}\n`)
  const hint = hintOf(error)
  if (hint !== undefined) process.stderr.write(`  ${pc.dim('hint:')} ${hint}\n`)
  if (process.env.LEASEHOLD_DEBUG !== undefined && error instanceof Error) process.stderr.write(`${error.stack}\n`)
}

/** The client's hint for programs that hold locks; somebody at a command line needs another one. */
const CLIENT_HINT = 'says nothing about who holds a lock'

/** What to do next, in words of the command line. */
export function hintOf(error: unknown): string | undefined {
  if (!(error instanceof LeaseholdError)) return undefined
  const { code, hint } = error
  if (hint !== undefined && hint !== CLIENT_HINT) return hint
  if (code === 'unreachable') return 'is the service running? try: leasehold serve'
  return code === 'no-quorum' ? 'too few members are up, or an election is under way: leasehold cluster status' : hint
}

function facts(error: unknown): Record<string, unknown> {
  if (error instanceof LeaseholdError) return { ...error.toJSON(), hint: hintOf(error) }
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) }
}
