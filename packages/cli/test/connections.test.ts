import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLocks } from 'leasehold'
import { afterEach, describe, expect, test } from 'vitest'
import { freePort } from '../../../tests/services/ports.js'
import { type Cli, until, Workshop } from './support/cli.js'

const ATTACKER = fileURLToPath(new URL('support/http-attacker.mjs', import.meta.url))
const MIB = 1024 * 1024
/** Shorter than the 9 to 20 s for which the service did not answer. */
const TTL_MS = 3_000
const ATTACK_MS = 12_000
const PROBE_MS = 200
const ANSWER_MS = 1_000
const GROWTH_MAX = 200 * MIB
/** Less than the attacker's connections to each port. */
const OPEN_FILES = 256
/** What must stay free for log files and members. */
const FREE_FILES_MIN = 32
const IDLE_MS = 5_000
const IDLE_HELD_MIN = 20

const workshop = new Workshop()
const attackers: ReturnType<typeof spawn>[] = []
afterEach(async () => {
  for (const child of attackers.splice(0)) child.kill('SIGKILL')
  await workshop.close()
})

/** Starts the attacker as a process of its own, and waits until it attacks. */
async function attack(port: string, deed: string): Promise<void> {
  const child = spawn(process.execPath, [ATTACKER, port, deed], { stdio: ['ignore', 'pipe', 'inherit'] })
  attackers.push(child)
  await once(child.stdout, 'data')
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

describe.runIf(process.platform === 'linux')('a client that pipelines requests and reads nothing', () => {
  test.each(['short', 'long'])('cannot fill the memory or delay others with %s requests', async (deed) => {
    const { cli, url } = await workshop.serve(workshop.folder())
    const pid = cli.process.pid as number
    await using locks = createLocks(url)
    const hold = await locks.acquire('invoice/42', { ttl: TTL_MS })
    const before = residentBytes(pid)
    await attack(new URL(url).port, deed)
    let most = 0
    let slowest = 0
    const end = performance.now() + ATTACK_MS
    while (performance.now() < end) {
      const start = performance.now()
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
      slowest = Math.max(slowest, performance.now() - start)
      most = Math.max(most, residentBytes(pid))
      await sleep(PROBE_MS)
    }
    const mib = (bytes: number) => Math.round(bytes / MIB)
    process.stdout.write(`${deed}: ${mib(before)} MiB, at most ${mib(most)} MiB; slowest ${Math.round(slowest)} ms\n`)
    expect(most - before).toBeLessThan(GROWTH_MAX)
    expect(slowest).toBeLessThan(ANSWER_MS)
    expect(hold.signal.aborted).toBe(false)
    await hold.release()
  })
})

interface Member {
  readonly name: string
  readonly port: number
  readonly peer: number
  readonly start: () => Cli
}

async function members(): Promise<Member[]> {
  const folder = workshop.folder()
  const places = await Promise.all(
    ['n1', 'n2', 'n3'].map(async (name) => ({ name, port: await freePort(), peer: await freePort() })),
  )
  const cluster = places.map(({ name, peer }) => `${name}=127.0.0.1:${peer}`).join(',')
  return places.map((place) => ({
    ...place,
    start: () =>
      workshop.start(
        [
          ...['serve', '--data', join(folder, place.name), '--listen', `127.0.0.1:${place.port}`, '--name', place.name],
          ...['--peer-listen', `127.0.0.1:${place.peer}`, '--cluster', cluster, '--log-level', 'warn', '--json'],
        ],
        { openFiles: OPEN_FILES },
      ),
  }))
}

describe.runIf(process.platform === 'linux')('300 idle connections to each port of a member', () => {
  test('leave it files, and cannot prevent an election or a write', async () => {
    const [first, second, third] = (await members()) as [Member, Member, Member]
    const [attacked, other, gone] = [first.start(), second.start(), third.start()]
    await Promise.all([attacked, other, gone].map((cli) => cli.printed('"url"')))
    const files = () => readdirSync(`/proc/${attacked.process.pid}/fd`).length
    const unattacked = files()
    await attack(String(first.port), 'idle')
    await attack(String(first.peer), 'idle')
    await until(() => files() > unattacked + IDLE_HELD_MIN, 'the member holds some of the connections')
    await sleep(IDLE_MS)
    process.stdout.write(`files: ${unattacked}, under attack ${files()}\n`)
    expect(files()).toBeLessThan(OPEN_FILES - FREE_FILES_MIN)
    // The two that remain have no connection to each other, and need one.
    for (const cli of [other, gone]) {
      cli.kill('SIGKILL')
      await cli.finished
    }
    const again = second.start()
    await again.printed('"url"')
    const url = `http://127.0.0.1:${first.port}`
    await until(async () => (await workshop.run(['put', 'plan', 'b', '--url', url])).code === 0, 'a put succeeded')
    expect(files()).toBeLessThan(OPEN_FILES - FREE_FILES_MIN)
    expect(attacked.running).toBe(true)
  })
})
