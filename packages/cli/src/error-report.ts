import { type ErrorCode, ERRORS, LeaseholdError } from '@leasehold/core'
import { errorColours } from './colours.js'
import { harmless } from './terminal-text.js'

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
  const message = harmless(messageOf(error))
  process.stderr.write(`${errorColours.red('leasehold:')} ${message}\n`)
  const hint = hintOf(error)
  if (hint !== undefined) process.stderr.write(`  ${errorColours.dim('hint:')} ${hint}\n`)
  if (process.env.LEASEHOLD_DEBUG !== undefined && error instanceof Error) process.stderr.write(`${error.stack}\n`)
}

/** How a connection fails, in words. */
const CONNECT_FAILURES = new Map([
  ['ECONNREFUSED', 'nobody listens there'],
  ['ENOTFOUND', 'there is no host of this name'],
  ['EAI_AGAIN', 'the name of the host cannot be looked up now'],
  ['EHOSTUNREACH', 'there is no way to this host'],
  ['ENETUNREACH', 'there is no way to this network'],
  ['ETIMEDOUT', 'no answer'],
])

/** Programs are told what was tried and how long; a person at a command line wants to know what is the matter. */
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof LeaseholdError) || error.code !== 'unreachable') return message
  const cause = innermost(error)
  const words = CONNECT_FAILURES.get((cause as NodeJS.ErrnoException).code ?? '')
  const place = /https?:\/\/[^\s,]+?(?=[,:]? |,|$)/.exec(message)?.[0]
  if (words === undefined || place === undefined || message.includes(',')) return message
  return `cannot reach ${place}: ${words}`
}

const CAUSES_MAX = 5

/** Where a failure began. */
export function innermost(error: Error): Error {
  let inner = error
  for (let depth = 0; depth < CAUSES_MAX && inner.cause instanceof Error; depth++) inner = inner.cause
  return inner
}

/** The client's hint for programs that hold locks; somebody at a command line needs another one. */
const CLIENT_HINT = 'says nothing about who holds a lock'

/** What to do next where nobody else has said it. */
const HINTS: { readonly [C in ErrorCode]?: string } = {
  busy: 'leasehold inspect NAME shows who holds it and who waits',
  timeout: 'leasehold inspect NAME shows who holds it and who waits',
  unreachable: 'is the service running? try: leasehold serve',
  'no-quorum': 'too few members are up, or an election is under way: leasehold cluster status',
  unauthenticated: 'name a key with --api-key-file, or put it into LEASEHOLD_API_KEY',
  'not-holder': 'leasehold ls shows what is held',
  'version-conflict': 'nothing was written: read it again with leasehold get, and decide anew',
}

/** What to do next, in words of the command line. */
export function hintOf(error: unknown): string | undefined {
  if (!(error instanceof LeaseholdError)) return undefined
  const { code, hint, message } = error
  if (hint !== undefined && hint !== CLIENT_HINT) return hint
  if (code === 'unreachable' && /^(etcd|postgres)/.test(message)) return 'is it running, and is this its address?'
  return HINTS[code] ?? hint
}

function facts(error: unknown): Record<string, unknown> {
  if (error instanceof LeaseholdError) return { ...error.toJSON(), hint: hintOf(error) }
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) }
}
