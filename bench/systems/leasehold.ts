import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createLocks } from 'leasehold'
import { endChild, startChild } from '../harness/children.js'
import type { Subject } from '../harness/closed-loop.js'
import { freePort } from '../../tests/services/ports.js'

const BIN = fileURLToPath(new URL('../../packages/leasehold/bin/leasehold.js', import.meta.url))
const TTL = '30s'
/** Flags of Node for the members, such as `--cpu-prof --cpu-prof-dir=DIR`. */
const NODE_FLAGS = (process.env['LEASEHOLD_BENCH_NODE'] ?? '').split(' ').filter((flag) => flag !== '')

/** A real service in a process of its own, with all its flushes. */
export async function startLeasehold(folder?: string) {
  const data = folder ?? mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const member = await BenchMember.start(['--data', data, '--listen', '127.0.0.1:0'])
  return await underLoad([member], async () => {
    if (folder === undefined) rmSync(data, { recursive: true, force: true })
  })
}

/** A cluster of `count` members, each in a process of its own. */
export async function startLeaseholdCluster(count: number) {
  const { members, cleanUp } = await startMembers(count)
  return await underLoad(members, async () => cleanUp())
}

/** The members of {@link startLeaseholdCluster}, to be ended and started one by one. */
export async function startMembers(count: number) {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-cluster-'))
  const names = Array.from({ length: count }, (_, i) => `n${i + 1}`)
  const peers = await Promise.all(names.map(async () => `127.0.0.1:${await freePort()}`))
  const list = names.map((name, i) => `${name}=${peers[i]}`).join(',')
  const cleanUp = () => rmSync(folder, { recursive: true, force: true })
  // All at once: a cluster begins when all its members are there.
  const starting = await Promise.allSettled(
    names.map(async (name, i) => {
      const listen = `127.0.0.1:${await freePort()}`
      const place = ['--name', name, '--peer-listen', peers[i] as string, '--cluster', list]
      return await BenchMember.start(['--data', join(folder, name), '--listen', listen, ...place])
    }),
  )
  const members = starting.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = starting.find((one) => one.status === 'rejected')
  if (failed === undefined) return { members, cleanUp }
  await Promise.all(members.map((member) => member.end()))
  cleanUp()
  throw failed.reason
}

export class BenchMember {
  private constructor(
    private readonly args: readonly string[],
    public child: ChildProcess,
    /** Where it takes clients. */
    readonly url: string,
  ) {}

  static async start(args: readonly string[]): Promise<BenchMember> {
    const { child, url } = startMember(args)
    return new BenchMember(args, child, await url)
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await endChild(this.child, signal)
  }

  /** Starts it again after its end, on the same data and ports. */
  async restart(): Promise<void> {
    await this.end('SIGKILL')
    const { child, url } = startMember(this.args)
    this.child = child
    await url
  }
}

function startMember(args: readonly string[]): { child: ChildProcess; url: Promise<string> } {
  const child = startChild(process.execPath, [...NODE_FLAGS, BIN, 'serve', ...args, '--json', '--log-level', 'error'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the service ended with ${code}`)))
    createInterface({ input: child.stdout as Readable }).on('line', (line) =>
      resolve((JSON.parse(line) as { url: string }).url),
    )
  })
  return { child, url }
}

async function underLoad(members: readonly BenchMember[], cleanUp: () => Promise<void>) {
  const urls = members.map((member) => member.url)
  const locks = createLocks(urls.join(','), { ttl: TTL, wait: Number.POSITIVE_INFINITY, clientName: 'bench' })
  const stop = async () => {
    await locks.close()
    await Promise.all(members.map((member) => member.end()))
    await cleanUp()
  }
  try {
    await locks.connect()
  } catch (error) {
    await stop()
    throw error
  }
  const pair = async (name: string) => {
    const start = performance.now()
    const hold = await locks.acquire(name)
    const granted = performance.now()
    await hold.release()
    return { start, granted, end: performance.now() }
  }
  const distinct: Subject = {
    system: 'leasehold',
    async pair(task) {
      const { start, end } = await pair(`bench/${task}`)
      return end - start
    },
  }
  const oneName: Subject = {
    system: 'leasehold',
    async pair() {
      const { start, granted } = await pair('bench/one')
      return granted - start
    },
  }
  return { distinct, oneName, stop, url: urls.join(','), pid: members[0]?.child.pid as number }
}
