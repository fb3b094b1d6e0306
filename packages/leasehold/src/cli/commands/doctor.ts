import { Command } from 'commander'
import pc from 'picocolors'
import { VERSION } from '../../version.js'
import { duration, print, printJson } from '../output.js'
import type { Outcome } from '../program.js'
import { type ServiceOptions, serviceCommand, urlOf, withLocks } from '../service.js'
import { exitCodeOf, hintOf } from '../failure.js'

interface Check {
  readonly check: string
  readonly ok: boolean
  readonly text: string
  readonly hint?: string | undefined
}

const PROBE = 'leasehold/doctor'
const ROUNDS = 20

/** `doctor`: is the service there, does it answer, how fast, and which TTL follows? */
export function doctorCommand(outcome: Outcome): Command {
  return serviceCommand(new Command('doctor'))
    .description('check the way to the service: reachable, takes locks, how fast, what TTL follows')
    .addHelpText(
      'after',
      '\nIt takes and releases the lock leasehold/doctor a few times.\n\nExample:\n  $ leasehold doctor',
    )
    .action(async (options: ServiceOptions) => {
      const checks: Check[] = [
        { check: 'version', ok: true, text: `leasehold ${VERSION}, node ${process.versions.node}` },
      ]
      try {
        await withLocks(options, async (locks) => {
          await locks.connect()
          checks.push({ check: 'reachable', ok: true, text: urlOf(options) })
          checks.push(...(await timings(async () => await (await locks.acquire(PROBE, { wait: 0 })).release())))
        })
      } catch (error) {
        const reached = checks.some((check) => check.check === 'reachable')
        checks.push({
          check: reached ? 'locks' : 'reachable',
          ok: false,
          text: (error as Error).message,
          hint: hintOf(error),
        })
        outcome.code = exitCodeOf(error)
      }
      if (options.json === true) return printJson({ ok: checks.every((check) => check.ok), checks })
      for (const { check, ok, text, hint } of checks) {
        print(`${ok ? pc.green('ok   ') : pc.red('fails')} ${check.padEnd(10)} ${text}`)
        if (hint !== undefined) print(`      ${' '.repeat(10)} ${pc.dim(hint)}`)
      }
    })
}

/** Measures acquire + release, and the pauses of this process meanwhile. */
async function timings(pair: () => Promise<unknown>): Promise<Check[]> {
  const times: number[] = []
  for (let i = 0; i < ROUNDS; i++) {
    const start = performance.now()
    await pair()
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  const median = times[Math.floor(times.length / 2)] as number
  const worst = times.at(-1) as number
  // A renewal is sent at a third of the TTL: twenty of the worst round trips leave room for several attempts.
  const ttlMs = Math.max(1_000, Math.ceil((worst * 20) / 1_000) * 1_000)
  return [
    {
      check: 'locks',
      ok: true,
      text: `acquire and release: median ${median.toFixed(1)} ms, worst ${worst.toFixed(1)} ms of ${ROUNDS}`,
    },
    {
      check: 'ttl',
      ok: true,
      text: `from these times a ttl of ${duration(ttlMs)} or more is safe against this network; the default is 10s`,
    },
  ]
}
