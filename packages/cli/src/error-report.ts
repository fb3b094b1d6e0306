import { type ErrorCode, ERRORS, LeaseholdError } from '@leasehold/core'
import { errorColours } from './colours.js'
import { harmless } from './terminal-text.js'

const EXIT_OTHER = 1

/** Returns the exit code of an error, from the error table. */
export function exitCodeOf(error: unknown): number {
  return error instanceof LeaseholdError ? ERRORS[error.code].exit : EXIT_OTHER
}

/** Writes an error to stderr: one line and a hint for people, one JSON line with `json`. */
export function report(error: unknown, json: boolean): void {
  if (json) {
    process.stderr.write(`${JSON.stringify({ error: facts(error) })}\n`)
    return
  }
  const message = harmless(messageOf(error))
  process.stderr.write(`${errorColours.red('leasehold:')} ${message}\n`)
  const hint = hintOf(error)
  if (hint !== undefined) process.stderr.write(`  ${errorColours.dim('hint:')} ${hint}\n`)
  if (process.env.LEASEHOLD_DEBUG !== undefined && error instanceof Error) process.stderr.write(`${error.stack}\n`)
}

/** Messages for connection failures. */
const CONNECT_FAILURES = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ENOTFOUND', 'host not found'],
  ['EAI_AGAIN', 'the host name cannot be resolved now'],
  ['EHOSTUNREACH', 'no route to the host'],
  ['ENETUNREACH', 'no route to the network'],
  ['ETIMEDOUT', 'no response'],
])

/** Shortens the message of a failed connection to its cause: the client's message lists attempts and times, for logs. */
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof LeaseholdError) || error.code !== 'unreachable') return message
  const cause = innermost(error)
  const reason = CONNECT_FAILURES.get((cause as NodeJS.ErrnoException).code ?? '')
  const place = /https?:\/\/[^\s,]+?(?=[,:]? |,|$)/.exec(message)?.[0]
  if (reason === undefined || place === undefined || message.includes(',')) return message
  return `cannot reach ${place}: ${reason}`
}

const CAUSES_MAX = 5

/** Returns the root cause of an error. */
export function innermost(error: Error): Error {
  let inner = error
  for (let depth = 0; depth < CAUSES_MAX && inner.cause instanceof Error; depth++) inner = inner.cause
  return inner
}

/** The client's hint for programs that hold locks. The command line has a better one. */
const CLIENT_HINT = 'says nothing about the holder of a lock'

/** Hints for errors without one of their own. */
const HINTS: { readonly [C in ErrorCode]?: string } = {
  busy: 'leasehold inspect NAME shows its holder and its queue',
  timeout: 'leasehold inspect NAME shows its holder and its queue',
  unreachable: 'is the service running? try: leasehold serve',
  'no-quorum': 'too few members are up, or an election is under way: leasehold cluster status',
  unauthenticated: 'name a key with --api-key-file, or put it into LEASEHOLD_API_KEY',
  'not-holder': 'leasehold ls shows what is held',
  'version-conflict': 'nothing was written: read the register with leasehold get, and try again with its version',
}

/** Returns the hint of an error, in terms of the command line. */
export function hintOf(error: unknown): string | undefined {
  if (!(error instanceof LeaseholdError)) return undefined
  const { code, hint, message } = error
  if (hint !== undefined && hint !== CLIENT_HINT) return hint
  if (code === 'unreachable' && /^(etcd|postgres)/.test(message)) return 'is it running at this address?'
  return HINTS[code] ?? hint
}

function facts(error: unknown): Record<string, unknown> {
  if (error instanceof LeaseholdError) return { ...error.toJSON(), hint: hintOf(error) }
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) }
}
