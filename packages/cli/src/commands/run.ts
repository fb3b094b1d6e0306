import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { AcquireTimeoutError, BusyError, ERRORS, HoldLostError, InvalidError, parseDuration } from '@leasehold/core'
import { Command } from 'commander'
import type { Hold, Locks } from 'leasehold'
import { report } from '../error-report.js'
import { numberOf } from '../argument-parsers.js'
import { note } from '../output.js'
import type { Outcome } from '../outcome.js'
import { Progress } from '../progress.js'
import { deadlineIn } from '../run/supervisor-messages.js'
import { killAfterOf } from '../run/kill-after.js'
import { type Ended, Supervised } from '../run/supervised.js'
import { apiKeyOf, type ServiceOptions, serviceCommand, urlOf, withLocks } from '../service-client.js'

interface Options extends ServiceOptions {
  readonly ttl: string
  readonly wait: string
  readonly shared?: boolean
  readonly permits?: number
  readonly killAfter?: string
  readonly conflictExitCode?: number
}

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const
/** Signals that abort the wait for the lock. */
const ENDING = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'])
const EXIT_NOT_EXECUTABLE = 126
const EXIT_NOT_FOUND = 127
const EXIT_SIGNAL_BASE = 128
/** How often the deadline is sent to the supervisor: this many times per TTL, at most once per minimum. */
const DEADLINES_PER_TTL = 20
const DEADLINE_GAP_MIN_MS = 25

const CONNECT_TIMEOUT_MS = 5_000
const RELEASE_LIMIT_MS = 3_000

const HELP = `
The command gets LEASEHOLD_LOCK, LEASEHOLD_FENCING_TOKEN (decimal) and LEASEHOLD_URL. Signals are forwarded. When the
hold is about to be lost, its whole process group gets SIGTERM at deadline - kill-after, and SIGKILL at the deadline.
Processes that the command leaves in its process group are ended before the lock is released.

Exit codes: the command's own (128 + n for signal n; 126/127 not executable/not found); 75 not acquired in time;
76 hold lost; 69 service unreachable; 77 not allowed; 64 wrong usage.

Example:
  $ leasehold run nightly-report --wait 0 -- ./report.sh --full`

/** `run NAME -- CMD ARGS…`: runs a command under a lock. */
export function runCommand(outcome: Outcome): Command {
  return serviceCommand(
    new Command('run').argument('<name>', 'the lock').argument('<command...>', 'the command, after --'),
  )
    .description('run a command while holding a lock')
    .option('--ttl <duration>', 'lease time: how long the lock stays taken if this machine dies', '30s')
    .option('--wait <duration>', 'how long to wait for the lock; 0 does not wait; Infinity', '30s')
    .option('--shared', 'share the lock with other shared holders')
    .option('--permits <n>', 'acquire one of n permits', numberOf('permits', 1))
    .option(
      '--kill-after <duration>',
      'time between SIGTERM and SIGKILL when the hold is lost (default: min(5s, ttl/6))',
    )
    .option(
      '-E, --conflict-exit-code <code>',
      'exit code when the lock was not acquired in time',
      numberOf('the exit code', 0, 255),
    )
    .addHelpText('after', HELP)
    .action(async (name: string, command: string[], options: Options) => {
      outcome.code = await run(name, command, options)
    })
}

async function run(name: string, command: readonly string[], options: Options): Promise<number> {
  const ttlMs = parseDuration(options.ttl, '--ttl', { noSmallNumbers: true })
  const killAfterMs = killAfterOf(ttlMs, options.killAfter)
  if (options.shared === true && options.permits !== undefined) {
    throw new InvalidError('--shared and --permits exclude each other')
  }
  const signals = new Signals()
  try {
    return await withLocks(
      options,
      async (locks) => {
        const hold = await acquire(locks, name, options, ttlMs, signals)
        if (typeof hold === 'number') return hold
        const child = new Supervised({
          command,
          env: environment(name, hold, options),
          deadline: () => deadlineIn(hold.remaining()),
          killAfterMs,
        })
        return await finish(hold, child, signals, ttlMs)
      },
      { connectTimeout: CONNECT_TIMEOUT_MS },
    )
  } finally {
    signals.close()
  }
}

/** Returns the hold, or the exit code if there is none. */
async function acquire(
  locks: Locks,
  name: string,
  options: Options,
  ttlMs: number,
  signals: Signals,
): Promise<Hold | number> {
  const wait = options.wait === 'Infinity' ? Number.POSITIVE_INFINITY : options.wait === '0' ? 0 : options.wait
  const mode = options.shared === true ? { mode: 'shared' as const } : {}
  const permits = options.permits === undefined ? {} : { permits: options.permits }
  const progress = new Progress(options)
  try {
    progress.wait(`waiting for ${name}`)
    return await locks.acquire(name, { ttl: ttlMs, wait, signal: signals.abort.signal, ...mode, ...permits })
  } catch (error) {
    if (signals.first !== undefined) return EXIT_SIGNAL_BASE + constants.signals[signals.first]
    const late = error instanceof BusyError || error instanceof AcquireTimeoutError
    if (!late || options.conflictExitCode === undefined) throw error
    report(error, options.json === true)
    return options.conflictExitCode
  } finally {
    progress.end()
  }
}

function environment(name: string, hold: Hold, options: Options): NodeJS.ProcessEnv {
  const slot = hold.slotOf(name)
  const apiKey = apiKeyOf(options)
  return {
    ...process.env,
    LEASEHOLD_LOCK: name,
    LEASEHOLD_FENCING_TOKEN: String(hold.tokenOf(name)),
    LEASEHOLD_URL: urlOf(options),
    ...(slot === undefined ? {} : { LEASEHOLD_SLOT: String(slot) }),
    ...(apiKey === undefined ? {} : { LEASEHOLD_API_KEY: apiKey }),
  }
}

/** Waits for the command, releases the lock, and returns the exit code. */
async function finish(hold: Hold, child: Supervised, signals: Signals, ttlMs: number): Promise<number> {
  signals.forwardTo(child)
  const timer = setInterval(
    () => {
      if (hold.state === 'held') child.deadline(deadlineIn(hold.remaining()))
    },
    Math.max(DEADLINE_GAP_MIN_MS, ttlMs / DEADLINES_PER_TTL),
  )
  hold.signal.addEventListener('abort', () => child.lost())
  if (hold.state !== 'held') child.lost()
  let ended: Ended
  try {
    ended = await child.ended
  } finally {
    clearInterval(timer)
  }
  const lost = hold.state === 'lost' ? ((await hold.lost) ?? undefined) : undefined
  await release(hold)
  if (ended.kind === 'failed') return notStarted(ended)
  if (lost !== undefined || ended.becauseLost) {
    throw lost ?? new HoldLostError('deadline', 'the hold was about to be lost, so the command was ended')
  }
  if (ended.signal !== null) return EXIT_SIGNAL_BASE + constants.signals[ended.signal]
  return ended.code ?? ERRORS.storage.exit
}

/** Releases the lock. An unreachable service delays the exit by a bounded time only. */
async function release(hold: Hold): Promise<void> {
  const problem = await Promise.race([
    hold.release().then(
      () => undefined,
      (error: Error) => error.message,
    ),
    sleep(RELEASE_LIMIT_MS, `no response within ${RELEASE_LIMIT_MS} ms`),
  ])
  if (problem !== undefined) note(`leasehold: not released, so the lock is free after its ttl: ${problem}`)
}

function notStarted(failed: Extract<Ended, { kind: 'failed' }>): number {
  note(`leasehold: cannot run the command: ${failed.message}`)
  return failed.code === 'ENOENT' ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE
}

/** Handles the signals of this process: they abort the wait, and are forwarded to the command once it runs. */
class Signals {
  readonly abort = new AbortController()
  /** The signal that aborted the wait. */
  first: NodeJS.Signals | undefined
  #child: Supervised | undefined
  readonly #handler = (signal: NodeJS.Signals) => {
    if (this.#child !== undefined) return this.#child.signal(signal)
    if (!ENDING.has(signal)) return
    this.first ??= signal
    this.abort.abort(signal)
  }

  constructor() {
    for (const signal of FORWARDED) process.on(signal, this.#handler)
  }

  forwardTo(child: Supervised): void {
    this.#child = child
    if (this.first !== undefined) child.signal(this.first)
  }

  close(): void {
    for (const signal of FORWARDED) process.off(signal, this.#handler)
  }
}
