import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { claimFolder } from '../../../src/node/ownership/claim-folder.js'

const spawnScript = (args: readonly string[]) =>
  spawn(process.execPath, [SCRIPT, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
interface Child extends ReturnType<typeof spawnScript> {
  readonly lines: string[]
}

const SCRIPT = fileURLToPath(new URL('../../support/owner-child.mjs', import.meta.url))
let dir: string
let children: Child[] = []

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'leasehold-owner-'))
})
afterEach(async () => {
  for (const child of children) await kill(child)
  children = []
  rmSync(dir, { recursive: true, force: true })
})

function start(folder = dir, ...args: string[]): Child {
  const child: Child = Object.assign(spawnScript([folder, ...args]), { lines: [] })
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() as string
    child.lines.push(...parts)
  })
  children.push(child)
  return child
}

async function line(child: Child, position = 0): Promise<string> {
  for (let waited = 0; child.lines.length <= position; waited += 10) {
    if (waited > 30_000) throw new Error(`no line ${position} from the child`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return child.lines[position] as string
}

async function kill(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  await new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.kill('SIGKILL')
  })
}

const ownerFiles = () => readdirSync(dir).filter((name) => /^owner\.\d+$/.test(name))

describe('owner of a data folder', () => {
  it('is exclusive, in this process and in others', async () => {
    const owner = await claimFolder(dir)
    await expect(claimFolder(dir)).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringContaining('is in use by'),
    })
    expect(await line(start())).toMatch(/^REFUSED storage .* is in use by .*pid \d+/)
    await owner.release()
    expect(await line(start())).toBe('OWNED 2')
  })

  it('is replaced at once when it was killed, and not when it is only suspended', async () => {
    const first = start()
    expect(await line(first)).toBe('OWNED 1')
    first.kill('SIGSTOP')
    await expect(claimFolder(dir)).rejects.toThrow(/is in use by child/)
    await expect(claimFolder(dir, { takeOver: true })).rejects.toThrow(/is in use by child/)
    await kill(first)
    const owner = await claimFolder(dir)
    expect(owner.number).toBe(2)
    expect(ownerFiles()).toEqual(['owner.2'])
    await owner.release()
  })

  it('can be followed by another one after it released the folder', async () => {
    const first = start()
    await line(first)
    first.stdin.write('release\n')
    expect(await line(first, 1)).toBe('RELEASED')
    const owner = await claimFolder(dir)
    expect(owner.number).toBe(2)
    await owner.release()
  })

  it('is exactly one of many processes that race after its death', async () => {
    let number = 1
    const first = start()
    await line(first)
    await kill(first)
    for (let round = 0; round < 3; round++) {
      const racers = Array.from({ length: 5 }, () => start())
      const said = await Promise.all(racers.map((racer) => line(racer)))
      const winners = said.filter((text) => text.startsWith('OWNED'))
      expect(winners, said.join('\n')).toHaveLength(1)
      expect(Number(winners[0]?.split(' ')[1])).toBeGreaterThan(number)
      number = Number(winners[0]?.split(' ')[1])
      expect(said.filter((text) => text.startsWith('REFUSED storage'))).toHaveLength(4)
      for (const racer of racers) await kill(racer)
    }
  })

  it('is replaced on another machine only with takeOver, and is notified then', async () => {
    const first = start()
    await line(first)
    const file = join(dir, 'owner.1')
    const record = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...record, host: 'elsewhere/123', boot: 'another' }))
    await expect(claimFolder(dir)).rejects.toMatchObject({
      message: expect.stringMatching(/belongs to child \(pid \d+ on elsewhere\)/),
      hint: expect.stringContaining('--take-over'),
    })
    const owner = await claimFolder(dir, { takeOver: true })
    expect(owner.number).toBe(2)
    expect(await line(first, 1)).toBe('LOST')
    await owner.release()
  })

  it('is dead when it started before a reboot of the machine', async () => {
    const first = start()
    await line(first)
    await kill(first)
    const file = join(dir, 'owner.1')
    const record = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...record, boot: 'another' }))
    const owner = await claimFolder(dir)
    expect(owner.number).toBe(2)
    await owner.release()
  })

  it('is not considered dead when its file is unreadable', async () => {
    writeFileSync(join(dir, 'owner.7'), 'half a rec')
    await expect(claimFolder(dir)).rejects.toThrow(/owner\.7 cannot be read/)
    const owner = await claimFolder(dir, { takeOver: true })
    expect(owner.number).toBe(8)
    await owner.release()
  })

  it('gets a storage error for an impossible folder', async () => {
    const file = join(dir, 'file')
    writeFileSync(file, '')
    for (const path of [file, join(file, 'below')]) {
      await expect(claimFolder(path)).rejects.toMatchObject({ code: 'storage', message: expect.stringContaining(path) })
    }
  })

  it('works in folders with long names', async () => {
    const deep = join(dir, 'a'.repeat(90), 'b'.repeat(90))
    mkdirSync(deep, { recursive: true })
    const child = start(deep)
    expect(await line(child)).toBe('OWNED 1')
    await expect(claimFolder(deep)).rejects.toThrow(/is in use by child/)
    await kill(child)
    const owner = await claimFolder(deep)
    await owner.release()
    expect(existsSync(join(deep, 'owner.2'))).toBe(true)
  })
})
