import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../tests/services/ports.js'
import { type Service, until, Workshop } from '../../cli/test/support/cli.js'
import { connect, type Locks, type LocksOptions } from '../src/index.js'

const PROGRAM = fileURLToPath(new URL('./support/life.mjs', import.meta.url))
/** How long a program that waits for nothing may take to end. */
const END_MS = 2_000
/** For a start on a busy machine. */
const START_MS = 3_000
/** Longer than a program would live that does not wait. */
const ALIVE_MS = 1_500

const workshop = new Workshop()
let service: Service
let locks: Locks
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
  locks = await connect(service.url)
})
afterAll(async () => {
  await locks.close()
  await workshop.close()
})

class Program {
  readonly process: ChildProcess
  readonly ended: Promise<number | null>
  #output = ''
  #changedAt = performance.now()
  #endedAt = Number.NaN

  constructor(url: string, kind: string, options: LocksOptions = {}) {
    this.process = spawn(process.execPath, [PROGRAM, url, kind, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text
      this.#changedAt = performance.now()
    })
    this.ended = new Promise((resolve) => {
      this.process.once('close', (code) => {
        this.#endedAt = performance.now()
        resolve(code)
      })
    })
  }

  get lines(): string[] {
    return this.#output.split('\n').slice(0, -1)
  }

  /** From its last line to its end. */
  get lastedMs(): number {
    return this.#endedAt - this.#changedAt
  }

  async printed(line: string): Promise<void> {
    await until(() => this.lines.includes(line) || this.process.exitCode !== null, `${line} was printed`)
    expect(this.lines).toContain(line)
  }

  async staysAlive(): Promise<void> {
    await sleep(ALIVE_MS)
    expect(this.process.exitCode).toBeNull()
  }
}

const TRANSPORTS: readonly LocksOptions[] = [{}, { transport: 'http' }, { keepAlive: 'worker' }]

describe.each(TRANSPORTS)('a program with the options %j', (options) => {
  const isHttp = options.transport === 'http'

  test('runs the line after close while the service answers', async () => {
    const program = new Program(service.url, 'close', options)
    await program.printed('held')
    program.process.stdin?.write('\n')
    expect(await program.ended).toBe(0)
    expect(program.lines).toEqual(['held', 'closed', 'end'])
    expect(program.lastedMs).toBeLessThan(END_MS)
  })

  test.each(['SIGKILL', 'SIGSTOP'] as const)('runs the line after close when the service got %s', async (signal) => {
    const other = await workshop.serve(workshop.folder())
    const program = new Program(other.url, 'close', options)
    await program.printed('held')
    other.cli.kill(signal)
    await sleep(100)
    const start = performance.now()
    program.process.stdin?.write('\n')
    expect(await program.ended).toBe(0)
    expect(program.lines).toEqual(['held', 'closed', 'end'])
    // connectTimeout, and the worst case of a thread that is ended.
    expect(performance.now() - start).toBeLessThan(2_000 + 2_000 + START_MS)
    if (other.cli.running) other.cli.kill('SIGKILL')
  })

  test.each(['close unused', 'close while opening'])(
    'runs the line after %s when no service is there',
    async (kind) => {
      const start = performance.now()
      const program = new Program(`http://127.0.0.1:${await freePort()}`, kind, options)
      expect(await program.ended).toBe(0)
      expect(program.lines).toEqual(['closed', 'end'])
      expect(performance.now() - start).toBeLessThan(2_000 + 2_000 + START_MS)
    },
  )

  test('reports that no service is there, and ends without close', async () => {
    const program = new Program(`http://127.0.0.1:${await freePort()}`, 'failed', options)
    expect(await program.ended).toBe(0)
    expect(program.lines).toEqual(['unreachable', 'end'])
    expect(program.lastedMs).toBeLessThan(END_MS)
  })

  test.each(['released', 'held'])('ends without close (%s)', async (kind) => {
    const program = new Program(service.url, kind, options)
    expect(await program.ended).toBe(0)
    expect(program.lines.at(-1)).toBe('end')
    expect(program.lastedMs).toBeLessThan(END_MS)
  })

  test.each(['lost', 'lost persistent', 'request'])('lives until its hold is lost (%s)', async (kind) => {
    const program = new Program(service.url, kind, options)
    await program.printed(kind === 'request' ? 'running' : 'held')
    await program.staysAlive()
    expect(await locks.steal(kind, { reason: 'test' })).toEqual({ stolen: 1 })
    expect(await program.ended).toBe(0)
    expect(program.lines.slice(1)).toEqual(['stolen', 'end'])
    expect(program.lastedMs).toBeLessThan(END_MS)
  })

  test('lives while it waits for a lock without a limit', async () => {
    const hold = await locks.acquire('wait')
    const program = new Program(service.url, 'wait', options)
    await program.printed('waiting')
    await program.staysAlive()
    await hold.release()
    expect(await program.ended).toBe(0)
    expect(program.lines).toEqual(['waiting', 'held', 'end'])
    // The process has ended without a release.
    await locks.steal('wait', { reason: 'test' })
  })

  test.skipIf(isHttp)('lives while it waits for the next event of a watch', async () => {
    const program = new Program(service.url, 'watch', options)
    await program.printed('watching')
    await program.staysAlive()
    await locks.request('watched/1', () => {})
    expect(await program.ended).toBe(0)
    expect(program.lines).toEqual(['watching', 'held', 'end'])
    expect(program.lastedMs).toBeLessThan(END_MS)
  })
})
