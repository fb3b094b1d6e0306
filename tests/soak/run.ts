import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from 'leasehold'
import { SeededRandom } from '../chaos/random.js'
import { liveOneClient, type Tally } from './client.js'
import { CuttingProxy } from './proxy.js'

const BIN = fileURLToPath(new URL('../../packages/leasehold/bin/leasehold.js', import.meta.url))

export interface SoakOptions {
  readonly clients: number
  readonly acquires: number
  readonly seed: number
  readonly kind: 'stream' | 'worker' | 'http'
  /** Pause between two rounds of cuts, and the share of the connections that each round cuts. */
  readonly cutEveryMs: number
  readonly cutShare: number
}

export interface SoakResult {
  readonly problems: readonly string[]
  readonly tally: Record<string, number>
  readonly cuts: number
  readonly seconds: number
}

/** Sessions that were given up end by their TTL of 15 s. */
const SESSIONS_END_MS = 80_000
/** Sockets of this process, and what belongs to them. */
const QUIET_LIMIT_MS = 40_000
const START_LIMIT_MS = 60_000

/** A service in a process of its own. */
async function serve(folder: string): Promise<{ url: string; stop: () => Promise<void> }> {
  const args = [BIN, 'serve', '--data', folder, '--listen', '127.0.0.1:0', '--json', '--log-level', 'error']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const end = performance.now() + START_LIMIT_MS
  while (!out.includes('\n')) {
    if (performance.now() > end || child.exitCode !== null) throw new Error('the service did not start')
    await sleep(20)
  }
  const stop = async () => {
    child.kill('SIGTERM')
    await gone
  }
  return { url: (JSON.parse(out) as { url: string }).url, stop }
}

/** Resources of this process by kind, for a comparison of before and after. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/**
 * Many clients acquire and release locks of one service while their connections are cut at random; then everything must be
 * gone: holds, waiters, sessions, timers, sockets and listeners.
 */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { clients, acquires, seed, kind, cutEveryMs, cutShare } = options
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-soak-'))
  const problems: string[] = []
  const onRejection = (error: unknown) => problems.push(`unhandled rejection: ${String(error)}`)
  process.on('unhandledRejection', onRejection)
  const service = await serve(join(folder, 'data'))
  const { proxy, url } = await CuttingProxy.to(service.url)
  const before = resources()
  const listeners = process.eventNames().length
  const begun = performance.now()
  const tally: Tally = new Map()
  try {
    const cutting = new SeededRandom(seed)
    const timer = setInterval(() => proxy.cut(cutShare, () => cutting.next()), cutEveryMs)
    const tokens = new Map<string, bigint>()
    await Promise.all(
      Array.from({ length: clients }, (_, number) => {
        const own = new SeededRandom(seed * 100_003 + number)
        const random = () => own.next()
        return liveOneClient({
          url,
          number,
          acquires,
          names: Math.ceil(clients / 4),
          random,
          kind,
          tally,
          tokens,
          problems,
        })
      }),
    )
    clearInterval(timer)
    const seconds = (performance.now() - begun) / 1000
    // Idle connections belong to the runtime's fetch, which keeps them for the next client.
    if (kind === 'http') proxy.cut(1, () => 0)
    await proxyIsQuiet(before, problems)
    await nothingIsLeft(service.url, problems)
    if (process.eventNames().length !== listeners) problems.push('listeners on the process are left')
    return { problems, tally: Object.fromEntries([...tally].sort()), cuts: proxy.cuts, seconds }
  } finally {
    await proxy.close()
    await service.stop()
    process.off('unhandledRejection', onRejection)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Sockets close in their own time; timers do not. */
async function proxyIsQuiet(before: Record<string, number>, problems: string[]): Promise<void> {
  const end = performance.now() + QUIET_LIMIT_MS
  for (;;) {
    const now = resources()
    const more = Object.keys(now).filter(
      (kind) => (now[kind] ?? 0) > (before[kind] ?? 0) + (kind === 'Timeout' ? 1 : 0),
    )
    if (more.length === 0) return
    if (performance.now() > end) {
      problems.push(`left in this process: ${more.map((kind) => `${now[kind]} ${kind}`).join(', ')}`)
      return
    }
    await sleep(100)
  }
}

/** Asks the service itself, past the proxy. */
async function nothingIsLeft(url: string, problems: string[]): Promise<void> {
  const locks = await connect(url, { clientName: 'judge' })
  const end = performance.now() + SESSIONS_END_MS
  try {
    for (;;) {
      const { held, pending, sessions } = await locks.query({ limit: 1000 })
      if (held.length + pending.length + sessions.length === 0) return
      if (performance.now() > end) {
        problems.push(
          `left at the service: ${held.length} holds, ${pending.length} waiters, ${sessions.length} sessions`,
        )
        return
      }
      await sleep(250)
    }
  } finally {
    await locks.close()
  }
}
