import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import * as nodeFs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InvalidError, StaleTokenError, StorageError, UnknownOutcomeError } from '@leasehold/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FileGuard, fence } from '../src/fs.js'
import { pausing, provesFencing } from '../src/testkit.js'
import { Crash, crashingAt } from './support/crashing-fs.js'
import { holdOf, holdOfLocks } from './support/holds.js'
import { randomOf, turns } from '../src/testkit/turns.js'

describe('the guard of a file', () => {
  let folder: string
  let file: FileGuard
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-fence-fs-'))
    file = fence(join(folder, 'state.json'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))
  const text = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes))

  it('keeps every version, and gives readers the newest', async () => {
    expect(await file.latest()).toBe(null)
    expect(await file.read(holdOf(33n))).toBe(null)
    await file.write(holdOf(33n), 'a')
    await file.write(holdOf(33n), new TextEncoder().encode('b'))
    expect(text(await file.latest())).toBe('b')
    expect(text(await file.read(holdOf(34n)))).toBe('b')
    await expect(file.write(holdOf(33n), 'late')).rejects.toMatchObject({ code: 'stale-token', token: 33n, mark: 34n })
    expect(text(await file.latest())).toBe('b')
    await file.write(holdOf(34n), 'c')
    expect([text(await file.latest()), text(await file.read(holdOf(35n)))]).toEqual(['c', 'c'])
    expect(readdirSync(folder).filter((name) => name.includes('tmp'))).toEqual([])
  })

  it('syncs a mark once that a killed process of the same hold may have left unsynced', async () => {
    await file.open(holdOf(33n))
    let syncs = 0
    const open: typeof nodeFs.open = async (path, ...rest) => {
      if (path === folder) syncs++
      return await nodeFs.open(path, ...rest)
    }
    const again = fence(join(folder, 'state.json'), { fs: { ...nodeFs, open } })
    expect(await again.read(holdOf(33n))).toBe(null)
    expect(syncs).toBe(1)
    await again.read(holdOf(33n))
    expect(syncs).toBe(1)
  })

  it('sweeps unneeded files, and still rejects late writers', async () => {
    for (let token = 30n; token < 40n; token++) await file.write(holdOf(token), `by ${token}`)
    await file.open(holdOf(40n))
    expect(await file.sweep(holdOf(40n))).toBe(29)
    expect(readdirSync(folder)).toHaveLength(3)
    expect(text(await file.latest())).toBe('by 39')
    await expect(file.write(holdOf(39n), 'late')).rejects.toThrow(StaleTokenError)
    await expect(file.sweep(holdOf(39n))).rejects.toThrow(StaleTokenError)
    await file.write(holdOf(40n), 'x')
    await file.write(holdOf(40n), 'y')
    await file.sweep(holdOf(40n))
    expect(text(await file.read(holdOf(41n)))).toBe('y')
  })

  it('passes the test kit, stopped at every call of the file system', async () => {
    const stopping = fence(join(folder, 'counter'), { fs: pausing({ ...nodeFs }) })
    const proved = await provesFencing(
      {
        open: (hold) => stopping.open(hold),
        read: async (hold) => Number(text(await stopping.read(hold))),
        write: (hold, n) => stopping.write(hold, String(n)),
        restart: async () => {},
      },
      { log: () => {} },
    )
    expect(proved.filter((one) => one.outcome === 'holds').map((one) => one.id)).toContain('A3')
  }, 240_000)

  it('loses no acknowledged version with many late writers and concurrent sweeps', async () => {
    const random = randomOf(7)
    let value = 0
    let token = 100n
    for (let round = 0; round < 25; round++) {
      const holds = Array.from({ length: 5 }, () => holdOf(++token))
      let unknown = 0
      const units = holds.map(async (hold) => {
        try {
          await turns(Math.floor(random() * 60))
          const seen = Number(text(await file.read(hold)))
          await turns(Math.floor(random() * 60))
          await file.write(hold, String(seen + 1))
        } catch (error) {
          if (error instanceof UnknownOutcomeError) unknown++
          else if (!(error instanceof StaleTokenError)) throw error
          return 0
        }
        if (random() < 0.3)
          await file.sweep(hold).catch((error: unknown) => expect(error).toBeInstanceOf(StaleTokenError))
        return 1
      })
      const acknowledged = (await Promise.all(units)).reduce<number>((sum, one) => sum + one, 0)
      const now = Number(text(await file.read(holdOf(++token))))
      expect(now, `round ${round}`).toBeGreaterThanOrEqual(value + acknowledged)
      expect(now, `round ${round}`).toBeLessThanOrEqual(value + acknowledged + unknown)
      value = now
    }
    expect(value).toBeGreaterThan(10)
  })

  it.each(['before', 'after'] as const)('survives a crash %s every call of the file system', async (when) => {
    let token = 1n
    await file.write(holdOf(token), '0')
    let value = 0
    let ended = false
    for (let n = 1; !ended; n++) {
      const dying = fence(join(folder, 'state.json'), { fs: crashingAt(n, when) })
      const hold = holdOf(++token)
      let acknowledged = false
      try {
        expect(Number(text(await dying.read(hold)))).toBe(value)
        await dying.write(hold, String(value + 1))
        acknowledged = true
        await dying.sweep(hold)
        ended = true
      } catch (error) {
        if (!(error instanceof Crash)) throw error
      }
      expect([value, value + 1]).toContain(Number(text(await file.latest())))
      const next = holdOf(++token)
      const seen = Number(text(await file.read(next)))
      if (acknowledged) expect(seen, `crash ${when} call ${n}`).toBe(value + 1)
      expect([value, value + 1]).toContain(seen)
      await file.write(next, String(seen + 1))
      value = seen + 1
      await expect(file.write(hold, 'late')).rejects.toThrow(StaleTokenError)
      await file.sweep(next)
      expect(readdirSync(folder)).toHaveLength(3)
      expect(Number(text(await file.latest()))).toBe(value)
      expect(n).toBeLessThan(200)
    }
    expect(value).toBeGreaterThan(20)
  })

  it.each([
    ['is acknowledged when later holders have built on it', false],
    ['is unknown when they have swept what would tell', true],
  ])('a late writer %s', async (_, sweeps) => {
    await file.write(holdOf(30n), '0')
    const list = nodeFs.readdir
    let listings = 0
    // Two later holds open and write between the creation of the version and the listing of the folder.
    const late = {
      ...nodeFs,
      async readdir(path: string) {
        if (readdirSync(folder).some((name) => name.endsWith('31.000000')) && ++listings === 1) {
          await file.write(holdOf(32n), `${text(await file.read(holdOf(32n)))}+`)
          expect(text(await file.read(holdOf(33n)))).toBe('1+')
          if (sweeps) await file.sweep(holdOf(33n))
        }
        return await list(path)
      },
    } as unknown as typeof nodeFs
    const writing = fence(join(folder, 'state.json'), { fs: late }).write(holdOf(31n), '1')
    if (sweeps) await expect(writing).rejects.toMatchObject({ code: 'unknown-outcome' })
    else await writing
    expect(text(await file.latest())).toBe('1+')
  })

  it('sweeps a bounded number of files per call', async () => {
    for (let token = 30n; token < 430n; token++) await file.open(holdOf(token))
    await file.write(holdOf(500n), 'x')
    const counts = [await file.sweep(holdOf(500n)), await file.sweep(holdOf(500n))]
    expect(counts).toEqual([800, 0])
    expect(text(await file.latest())).toBe('x')
  })

  it('rejects shared holds, permits, several locks and invalid content', async () => {
    await expect(file.open(holdOf(33n, 'a', 'shared'))).rejects.toMatchObject({ code: 'mismatch' })
    await expect(file.open(holdOf(33n, 'a', { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    const both = holdOfLocks(['a', 'b'].map((name) => ({ name, mode: 'exclusive' as const, token: 33n })))
    await expect(file.open(both)).rejects.toMatchObject({ code: 'invalid' })
    await file.open(both, { lock: 'a' })
    await expect(file.write(holdOf(33n), 7 as never)).rejects.toMatchObject({ code: 'invalid' })
    expect(() => fence('')).toThrow(InvalidError)
    const lost = holdOf(34n)
    lost.lose()
    await expect(file.open(lost)).rejects.toMatchObject({ code: 'lost' })
  })

  it('reports a full disk or missing links, and leaves no partial files', async () => {
    await file.write(holdOf(33n), 'a')
    const failing = (code: string) => ({
      ...nodeFs,
      link: () => Promise.reject(Object.assign(new Error(code), { code })),
    })
    const path = join(folder, 'state.json')
    await expect(fence(path, { fs: failing('ENOSPC') }).write(holdOf(34n), 'b')).rejects.toThrow(StorageError)
    await expect(fence(path, { fs: failing('EPERM') }).write(holdOf(34n), 'b')).rejects.toMatchObject({
      message: expect.stringMatching(/hard links/),
    })
    expect(text(await file.latest())).toBe('a')
    expect(readdirSync(folder).filter((name) => name.includes('tmp'))).toEqual([])
  })
})
