import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocks, type Hold, type Locks } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ArbitratedFile, arbitrated } from '../src/fs-arbiter.js'
import { Crash, crashingAt } from './support/crashing-fs.js'

const text = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes))

/** A hold whose process does not know that it has ended. */
function unaware(hold: Hold): Hold {
  return new Proxy(hold, {
    get(object, property) {
      if (property === 'assertHeld') return () => {}
      const value = Reflect.get(object, property, object) as unknown
      return typeof value === 'function' ? value.bind(object) : value
    },
  })
}

describe('a file with Leasehold as the arbiter', () => {
  let folder: string
  let locks: Locks
  let file: ArbitratedFile
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-fence-arbiter-'))
    locks = createLocks(`memory:fence-arbiter-${Math.random()}`)
    file = arbitrated(join(folder, 'settings.json'), locks.register('files/settings'))
  })
  afterEach(async () => {
    await locks.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('has one current version, and rejects late writers', async () => {
    expect(await file.latest()).toBe(null)
    const first = await locks.acquire('settings')
    expect(await file.read(first)).toBe(null)
    await file.write(first, 'a')
    await file.write(first, 'b')
    expect(text(await file.latest())).toBe('b')
    await locks.steal('settings', { reason: 'test' })
    const second = await locks.acquire('settings')
    expect(text(await file.read(second))).toBe('b')
    const late = file.write(unaware(first), 'late')
    await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/lost|not-holder/) })
    expect(text(await file.latest())).toBe('b')
    await file.write(second, 'c')
    expect(await file.sweep(second)).toBeGreaterThanOrEqual(2)
    expect(readdirSync(folder)).toHaveLength(1)
    expect(text(await file.latest())).toBe('c')
    await expect(file.write(second, 7 as never)).rejects.toMatchObject({ code: 'invalid' })
    await second.release()
  })

  it('makes read and write one unit for many concurrent tasks', async () => {
    const raise = () =>
      locks.request('settings', async (hold) => file.write(hold, String(Number(text(await file.read(hold))) + 1)))
    await Promise.all(Array.from({ length: 12 }, raise))
    expect(text(await file.latest())).toBe('12')
  })

  it.each(['before', 'after'] as const)('survives a crash %s every call of the file system', async (when) => {
    await locks.request('settings', (hold) => file.write(hold, 'old'))
    let ended = false
    for (let n = 1; !ended; n++) {
      const dying = arbitrated(join(folder, 'settings.json'), locks.register('files/settings'), {
        fs: crashingAt(n, when),
      })
      await locks.request('settings', async (hold) => {
        try {
          await dying.write(hold, 'new')
          ended = true
        } catch (error) {
          if (!(error instanceof Crash)) throw error
        }
      })
      expect(text(await file.latest())).toBe(ended ? 'new' : 'old')
      expect(n).toBeLessThan(50)
    }
    await locks.request('settings', async (hold) => {
      await file.write(hold, 'next')
      await file.sweep(hold)
    })
    expect(readdirSync(folder)).toHaveLength(1)
  })

  it('rejects invalid paths, registers and holds', async () => {
    expect(() => arbitrated('', locks.register('x'))).toThrow(/path/)
    expect(() => arbitrated('x', {} as never)).toThrow(/register/)
    await locks.request('settings', { mode: 'shared' }, async (hold) => {
      await expect(file.write(hold, 'x')).rejects.toMatchObject({ code: 'mismatch' })
    })
  })
})
