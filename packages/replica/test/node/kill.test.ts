import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command, Result } from '@leasehold/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openNodeReplica } from '../../src/node/open-replica.js'
import type { Replica } from '../../src/replica.js'
import { acquire } from '../support/world.js'

const SCRIPT = fileURLToPath(new URL('../support/replica-child.mjs', import.meta.url))
const SMALL = { segmentBytes: 256 * 1024, reserveBytes: 64 * 1024, snapshotBytes: 100_000 }
let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'leasehold-kill-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const submit = (replica: Replica, command: Command) =>
  new Promise<Result>((resolve) => replica.submit(command, resolve))
const stop = (replica: Replica) => new Promise<void>((resolve) => replica.stop(resolve))

/** Runs a member in a separate process, kills it after `lines` acknowledgements, and returns its output. */
async function runAndKill(from: number, lines: number): Promise<string[]> {
  const child = spawn(process.execPath, [SCRIPT, dir, String(from)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8')
  for await (const part of child.stdout as AsyncIterable<string>) {
    text += part
    if (text.split('\n').length > lines) child.kill('SIGKILL')
  }
  return text.split('\n').slice(0, -1)
}

describe('kill -9', () => {
  it('loses nothing that was acknowledged and repeats no token, at any moment', async () => {
    const seen = new Map<string, number>()
    let highest = 0
    for (let round = 0; round < 4; round++) {
      for (const line of await runAndKill(1 + round * 100_000, 150 + 170 * round)) {
        const [name, hold] = line.split(' ') as [string, string]
        expect(Number(hold)).toBeGreaterThan(round === 0 ? 0 : highest)
        seen.set(name, Number(hold))
      }
      highest = Math.max(...seen.values())
    }
    expect(seen.size).toBeGreaterThan(1000)
    const replica = await openNodeReplica({ dir, ...SMALL, mustExist: true })
    await new Promise<void>((resolve) => replica.read(() => resolve()))
    const held = new Map([...replica.stale().state.machine.holds.values()].map((hold) => [hold.held[0]?.name, hold.id]))
    for (const [name, hold] of seen) expect(held.get(name), name).toBe(hold)
    await stop(replica)
  })
})

function canMount(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  const probe = mkdtempSync(join(tmpdir(), 'leasehold-mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', probe], { stdio: 'ignore' })
    execFileSync('umount', [probe], { stdio: 'ignore' })
    return true
  } catch {
    return false
  } finally {
    rmSync(probe, { recursive: true, force: true })
  }
}

describe.skipIf(!canMount())('a disk that is really full (needs root on Linux, for a small tmpfs)', () => {
  const MIB = 1024 * 1024

  async function onDisk(bytes: number, action: (folder: string) => Promise<void>): Promise<void> {
    const folder = join(dir, 'small')
    mkdirSync(folder)
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder])
    try {
      await action(folder)
    } finally {
      execFileSync('umount', ['-l', folder])
    }
  }

  it('leaves no file behind when there is no room to start', async () => {
    await onDisk(256 * 1024, async (folder) => {
      await expect(openNodeReplica({ dir: folder, segmentBytes: MIB })).rejects.toMatchObject({
        code: 'storage',
        message: expect.stringContaining('no space'),
      })
      expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
    })
  })

  it('refuses grants, accepts releases, loses nothing, and serves again when there is room', async () => {
    // Room for the log, its two spare files and the reserve, and for nothing more after the log has rolled.
    await onDisk(3.5 * MIB, async (folder) => {
      const options = { dir: folder, segmentBytes: MIB, reserveBytes: 64 * 1024 }
      const replica = await openNodeReplica(options)
      const opened = await submit(replica, {
        kind: 'openSession',
        nonce: '01'.repeat(16),
        secret: '01'.repeat(16),
        ttlMs: 600_000 as never,
        client: '',
        local: false,
      })
      const { session } = opened as Extract<Result, { kind: 'opened' }>
      const granted = await submit(replica, acquire(session, 1, 'a'))
      const { hold } = (granted as Extract<Result, { kind: 'granted' }>).grant
      let refusal: Result | undefined
      let request = 2
      for (; request < 500 && !refusal; request++) {
        const ack = { lowest: request, also: [] }
        const result = await submit(replica, {
          kind: 'put',
          session,
          request,
          ack,
          key: 'k',
          value: new Uint8Array(30_000),
        })
        if (result.kind === 'refused') refusal = result
      }
      expect(refusal).toMatchObject({ code: 'storage', message: expect.stringContaining('full') })
      expect(await submit(replica, { kind: 'release', session, hold })).toMatchObject({ kind: 'released' })
      expect(replica.status).toMatchObject({ disk: 'full', failure: undefined })
      await stop(replica)
      execFileSync('mount', ['-o', `remount,size=${16 * MIB}`, folder])
      const again = await openNodeReplica(options)
      expect(await submit(again, acquire(session, request, 'a'))).toMatchObject({ kind: 'granted' })
      expect(again.stale().state.machine.registers.size).toBe(1)
      await stop(again)
    })
  })
})
