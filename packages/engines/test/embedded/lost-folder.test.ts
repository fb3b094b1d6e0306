import { cp, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocksOn, type Locks } from '@leasehold/client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { embeddedEngine } from '../../src/embedded.js'

/** The member checks once a second; the machine may be busy. */
const NOTICED_MS = 10_000

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'leasehold-embedded-lost-'))
})
afterEach(() => rm(dir, { recursive: true, force: true, maxRetries: 10 }))

/** Puts until one fails. */
async function failureOf(locks: Locks): Promise<unknown> {
  for (const end = performance.now() + NOTICED_MS; performance.now() < end; ) {
    try {
      await locks.register('r').put(2)
    } catch (error) {
      return error
    }
    await new Promise((done) => setTimeout(done, 20))
  }
  throw new Error('everything went on')
}

describe('file: with a folder that is lost', () => {
  it('acknowledges nothing from then on, loses its holds, and reports why', async () => {
    const data = join(dir, 'data')
    const locks = createLocksOn(await embeddedEngine(`file:${data}`), { ttl: '3s' })
    const hold = await locks.acquire('a')
    await rename(data, join(dir, 'away'))
    await failureOf(locks)
    await expect(locks.register('r').put(3)).rejects.toMatchObject({
      // The member's own answer, or that of the closed connection: whichever comes first.
      code: expect.stringMatching(/^(unreachable|storage)$/),
      message: expect.stringMatching(/has stopped: member n1 .*the data folder .*data is gone/),
    })
    await expect.poll(() => hold.state, { timeout: 10_000 }).toBe('lost')
    await locks.close()
    await rename(join(dir, 'away'), data)
    await using again = createLocksOn(await embeddedEngine(`file:${data}`))
    await again.register('r').put(4)
  })

  it('refuses a copy of a folder that this process serves', async () => {
    const data = join(dir, 'data')
    await using locks = createLocksOn(await embeddedEngine(`file:${data}`))
    await locks.register('r').put(1)
    await cp(data, join(dir, 'copy'), { recursive: true, filter: (name) => !/\.(sock|tmp)$/.test(name) })
    await expect(embeddedEngine(`file:${join(dir, 'copy')}`)).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringContaining(`is a copy of ${data}`),
    })
    await locks.register('r').put(2)
  })
})
