import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, InvalidError } from '../src/index.js'
import { type Service, Workshop } from '../../cli/test/support/cli.js'

const workshop = new Workshop()
let service: Service
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
})
afterAll(() => workshop.close())

const PROGRAM = fileURLToPath(new URL('./support/blocked.mjs', import.meta.url))

/** A program that takes a lock and blocks its thread; what it prints, one JSON object per line. */
function blocked(settings: object): { lines: Record<string, unknown>[]; over: Promise<number | null> } {
  const child = spawn(process.execPath, [PROGRAM, service.url, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: Record<string, unknown>[] = []
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() as string
    for (const part of parts) lines.push(JSON.parse(part) as Record<string, unknown>)
  })
  return { lines, over: new Promise((resolve) => child.once('close', resolve)) }
}

describe('a computation that blocks its thread for longer than the TTL', () => {
  test("loses its lock with keepAlive: 'main', and detects it at once", async () => {
    const { lines, over } = blocked({ name: 'main', keepAlive: 'main', blockMs: 4_000 })
    expect(await over).toBe(0)
    expect(lines).toMatchObject([{ state: 'held' }, { state: 'lost' }, { released: false }])
  })

  test("keeps its lock with 'worker', and the program can exit", async () => {
    const { lines, over } = blocked({ name: 'worker', keepAlive: 'worker', blockMs: 5_000 })
    const locks = await connect(service.url)
    while (lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await locks.tryAcquire('worker')).toBeNull()
    const next = await locks.acquire('worker', { wait: '60s' })
    expect(await over).toBe(0)
    expect(lines).toMatchObject([{ state: 'held' }, { state: 'held' }, { released: true }])
    expect(next.token).toBeGreaterThan(BigInt(lines[0]?.token as string))
    await locks.close()
  })

  test('maxHold ends the hold while the thread is blocked', async () => {
    const { lines, over } = blocked({ name: 'limited', keepAlive: 'worker', maxHold: '1500ms', blockMs: 8_000 })
    const locks = await connect(service.url)
    while (lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    await locks.acquire('limited', { wait: '60s' })
    // The one line so far was printed before the block.
    expect(lines).toHaveLength(1)
    expect(await over).toBe(0)
    expect(lines.slice(1)).toMatchObject([{ state: 'lost' }, { released: false }])
    await locks.close()
  })

  test('a lock that was stolen during the computation is lost', async () => {
    const { lines, over } = blocked({ name: 'stolen', keepAlive: 'worker', blockMs: 4_000, settleMs: 2_000 })
    const locks = await connect(service.url)
    while (lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    await locks.steal('stolen', { reason: 'test' })
    expect(await over).toBe(0)
    expect(lines[1]).toMatchObject({ state: 'lost', reason: 'stolen' })
    await locks.close()
  })

  test('a program that does not close its client exits, even while it holds a lock', async () => {
    const { lines, over } = blocked({ name: 'forgotten', keepAlive: 'worker', blockMs: 0, leave: true })
    expect(await over).toBe(0)
    expect(lines).toMatchObject([{ state: 'held' }])
  })
})

test("keepAlive: 'worker' is rejected for other schemes, and wrong values are named", async () => {
  await expect(connect('memory:x', { keepAlive: 'worker' })).rejects.toBeInstanceOf(InvalidError)
  const wrong = connect(service.url, { keepAlive: 'thread' as 'worker' })
  await expect(wrong).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('keepAlive') })
})
