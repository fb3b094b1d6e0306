import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLocksOn } from '@leasehold/client'
import { StorageError } from '@leasehold/core'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { embeddedEngine } from '../../src/embedded.js'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const built = existsSync(join(root, 'packages/engines/dist/embedded.js'))
const children: ChildProcess[] = []
const folders: string[] = []

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }
  for (const dir of folders.splice(0)) await rm(dir, { recursive: true, force: true })
})

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-process-'))
  folders.push(dir)
  return dir
}

/** Runs a program on the build, with `locks` on `url`. */
function program(
  url: string,
  body: string,
): { child: ChildProcess; said: (text: string) => Promise<string>; output: () => string } {
  const text = `
    import { createLocksOn } from '@leasehold/client'
    import { embeddedEngine } from '@leasehold/engines/embedded'
    const locks = createLocksOn(await embeddedEngine(${JSON.stringify(url)}))
    ${body}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { cwd: join(root, 'packages/engines') })
  children.push(child)
  let output = ''
  child.stdout?.on('data', (data) => {
    output += data
  })
  child.stderr?.on('data', (data) => {
    output += data
  })
  const said = (wanted: string) =>
    vi.waitFor(() => (expect(output).toContain(wanted), output), { timeout: 40_000, interval: 20 })
  return { child, said, output: () => output }
}

/** After all of its output has arrived. */
async function exitCode(child: ChildProcess): Promise<number | null> {
  await once(child, 'close')
  return child.exitCode
}

describe.skipIf(!built)('a process of its own (needs the build)', () => {
  it('that is killed frees its locks when the folder is opened again, whatever its TTL', async () => {
    const dir = await folder()
    const { child, said } = program(
      `file:${dir}`,
      `const hold = await locks.acquire('a', { ttl: '1h' }); console.log('token ' + hold.token + '.'); setInterval(() => {}, 1000)`,
    )
    const token = BigInt(/token (\d+)\./.exec(await said('token'))?.[1] ?? 0)
    await expect(embeddedEngine(`file:${dir}`)).rejects.toBeInstanceOf(StorageError)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await using locks = createLocksOn(await embeddedEngine(`file:${dir}`))
    const hold = await locks.acquire('a', { wait: '20s' })
    expect(hold.token).toBeGreaterThan(token)
  })

  it('exits by itself although it holds a lock: nothing of the client keeps it alive', async () => {
    const { child, output } = program('memory:x', `await locks.acquire('a'); console.log('held')`)
    expect({ code: await exitCode(child), output: output() }).toEqual({ code: 0, output: 'held\n' })
  })

  it('that waits for a lock does not exit before the wait ends', async () => {
    const { child, output } = program(
      'memory:x',
      `await locks.acquire('a')
      const error = await locks.acquire('a', { wait: '300ms' }).catch((e) => e)
      console.log(error.code)`,
    )
    expect({ code: await exitCode(child), output: output() }).toEqual({ code: 0, output: 'timeout\n' })
  })

  it('whose event loop was blocked beyond the deadline runs no code under the dead hold', async () => {
    const { child, output } = program(
      'memory:x',
      `const outcome = await locks.request('a', { ttl: '2s' }, async (hold) => {
        const end = Date.now() + 3_000
        while (Date.now() < end) {}
        console.log(hold.state, hold.signal.aborted)
        return 7
      }).catch((e) => e.code + ' ' + e.reason + ' ' + e.result)
      console.log(outcome)`,
    )
    expect({ code: await exitCode(child), output: output() }).toEqual({
      code: 0,
      output: 'lost true\nlost deadline 7\n',
    })
  })
})

/** How long a lease of the shortest TTL lasts here without a renewal. */
const SHORTEST_LEASE_MS = 80
/** Looks that a process which nothing holds up takes in that time: one every two milliseconds. */
const LOOKS = 38

/** Watches whether this process gets to work. */
class Watchman {
  readonly #looks = [performance.now()]
  readonly #timer = setInterval(() => this.#looks.push(performance.now()), 2)

  /** The fewest checks within one lease: the fewer, the longer the process was blocked. */
  end(): number {
    clearInterval(this.#timer)
    const until = performance.now() - SHORTEST_LEASE_MS
    const counts = this.#looks
      .filter((at) => at <= until)
      .map((at) => this.#looks.filter((other) => other > at && other <= at + SHORTEST_LEASE_MS).length)
    return Math.min(...counts)
  }
}

describe('in this process', () => {
  it("a test framework's fake timers do not stop renewals", async () => {
    const { setTimeout: realTimeout } = globalThis
    await using locks = createLocksOn(await embeddedEngine('memory:fake-timers'), { ttl: '2s' })
    const hold = await locks.acquire('a')
    vi.useFakeTimers()
    try {
      await new Promise((resolve) => realTimeout(resolve, 4_500))
      expect(hold.state).toBe('held')
    } finally {
      vi.useRealTimers()
    }
  })

  it('the shortest TTL is renewed by a process that is scheduled', async () => {
    await using locks = createLocksOn(await embeddedEngine('memory:short'), { ttl: '100ms' })
    const watchman = new Watchman()
    const hold = await locks.acquire('a')
    const first = hold.deadline.getTime()
    await new Promise((resolve) => setTimeout(resolve, 600))
    const fewest = watchman.end()
    if (hold.state === 'held') expect(hold.deadline.getTime()).toBeGreaterThan(first)
    // On a busy machine a process may stand still for longer than this lease; then it is right that it is lost.
    else expect(fewest).toBeLessThan((LOOKS * 2) / 3)
  })
})
