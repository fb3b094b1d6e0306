import { AccessError } from '@leasehold/core'
import { Command } from 'commander'
import { VERSION } from '../version.js'
import { outColours } from '../colours.js'
import { duration, print, printJson } from '../output.js'
import type { Outcome } from '../outcome.js'
import { callService } from '../call-service.js'
import { withProgress } from '../progress.js'
import { readinessOf } from '../readiness.js'
import { type ServiceOptions, serviceCommand, tlsOf, urlOf, withLocks } from '../service-client.js'
import { type Check, clockChecks, diskChecks, filesCheck } from '../machine-checks.js'
import { exitCodeOf, hintOf } from '../error-report.js'

interface DoctorOptions extends ServiceOptions {
  readonly data?: string
}

const PROBE = 'leasehold/doctor'
const ROUNDS = 20
const EXIT_CHECK_FAILED = 1

/** `doctor`: checks this machine and the service, and recommends a TTL. */
export function doctorCommand(outcome: Outcome): Command {
  return serviceCommand(new Command('doctor'))
    .description(
      'check this machine and the connection to the service: clocks, disk, members, locks, and a suitable TTL',
    )
    .option('--data <dir>', 'also check the disk of this data folder')
    .addHelpText(
      'after',
      `
It acquires and releases the lock leasehold/doctor a few times.

Examples:
  $ leasehold doctor
  $ leasehold doctor --data /var/lib/leasehold`,
    )
    .action(async (options: DoctorOptions) => {
      const checks = await withProgress(options, async (progress): Promise<Check[]> => {
        progress.wait('checking this machine, its clocks and the service')
        return [
          { check: 'version', ok: true, text: `leasehold ${VERSION}, node ${process.versions.node}` },
          ...(options.data === undefined ? [] : diskChecks(options.data)),
          ...[filesCheck()].filter((one) => one !== undefined),
          ...(await clockChecks()),
          ...(await serviceChecks(options, outcome)),
        ]
      })
      if (checks.some(({ ok }) => !ok) && outcome.code === 0) outcome.code = EXIT_CHECK_FAILED
      if (options.json === true) return printJson({ ok: checks.every((check) => check.ok), checks })
      for (const { check, ok, text, hint } of checks) {
        print(`${ok ? outColours.green('ok   ') : outColours.red('fails')} ${check.padEnd(10)} ${text}`)
        if (hint !== undefined) print(`      ${' '.repeat(10)} ${outColours.dim(hint)}`)
      }
    })
}

async function serviceChecks(options: ServiceOptions, outcome: Outcome): Promise<Check[]> {
  const checks: Check[] = []
  try {
    await withLocks(options, async (locks) => {
      await locks.connect()
      checks.push({ check: 'reachable', ok: true, text: urlOf(options) })
      if (/^https?:/.test(urlOf(options))) checks.push(...(await memberChecks(options)))
      checks.push(...(await timings(async () => await (await locks.acquire(PROBE, { wait: 0 })).release())))
    })
  } catch (error) {
    const reached = checks.some((check) => check.check === 'reachable')
    const check = error instanceof AccessError ? 'access' : reached ? 'locks' : 'reachable'
    checks.push({ check, ok: false, text: (error as Error).message, hint: hintOf(error) })
    outcome.code = exitCodeOf(error)
  }
  return checks
}

interface ClusterStatus {
  readonly leader: string
  readonly disk: string
  readonly commitIndex: number
  readonly members?: readonly { readonly name: string; readonly url: string; readonly role: string }[]
}

/** Checks the leader, the readiness of the members, and their disks. */
async function memberChecks(options: ServiceOptions): Promise<Check[]> {
  const {
    leader,
    disk,
    members = [],
  } = (await callService(options, '/v1/cluster', undefined, { method: 'GET' })) as ClusterStatus
  const tls = tlsOf(options)
  const states = await Promise.all(members.map(async ({ name, url }) => [name, await readinessOf(url, tls)] as const))
  const away = states.filter(([, state]) => state !== 'ready')
  const majority = Math.floor(members.filter(({ role }) => role === 'voter').length / 2) + 1
  const quorum =
    members.length === 0 ? 'a service of one' : `${leader} leads ${members.length} members; a majority is ${majority}`
  return [
    { check: 'quorum', ok: leader !== '', text: leader === '' ? 'no leader is known' : quorum },
    ...(away.length === 0
      ? []
      : [
          {
            check: 'members',
            ok: false,
            text: away.map(([name, state]) => `${name}: ${state}`).join('; '),
            hint: 'the service works while a majority is up: repair these members before another one fails',
          },
        ]),
    ...(disk === 'ok'
      ? []
      : [{ check: 'disk', ok: false, text: 'a member uses its disk reserve', hint: 'free space on its disk' }]),
  ]
}

/** Measures acquire and release, and derives a TTL. */
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
  // Renewals are sent at a third of the TTL: a TTL of twenty worst round trips allows several attempts.
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
      text: `at these latencies, a ttl of ${duration(ttlMs)} or more is safe; the default is 10s`,
    },
  ]
}
