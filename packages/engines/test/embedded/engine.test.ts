import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocksOn } from '@leasehold/client'
import { BusyError } from '@leasehold/core'
import { afterEach, describe, expect, it } from 'vitest'
import { embeddedEngine } from '../../src/embedded.js'

const folders: string[] = []

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-embedded-'))
  folders.push(dir)
  return dir
}

afterEach(async () => {
  for (const dir of folders.splice(0)) await rm(dir, { recursive: true, force: true })
})

describe('memory:', () => {
  it('is one service for all clients of the process with the same name', async () => {
    await using one = createLocksOn(await embeddedEngine('memory:shared'))
    await using two = createLocksOn(await embeddedEngine('memory:shared'))
    await using other = createLocksOn(await embeddedEngine('memory:other'))
    const hold = await one.acquire('a')
    await expect(two.acquire('a', { wait: 0 })).rejects.toBeInstanceOf(BusyError)
    const elsewhere = await other.acquire('a', { wait: 0 })
    expect(elsewhere.state).toBe('held')
    const waiting = two.acquire('a')
    await hold.release()
    expect((await waiting).token).toBeGreaterThan(hold.token)
  })

  it('is gone when its last client is closed', async () => {
    const one = createLocksOn(await embeddedEngine('memory:gone'))
    await one.register('r').put({ x: 1 })
    await one.close()
    await using two = createLocksOn(await embeddedEngine('memory:gone'))
    expect(await two.register('r').get()).toBeNull()
  })

  it('refuses a URL without a name', async () => {
    await expect(embeddedEngine('memory:')).rejects.toMatchObject({ code: 'invalid' })
    await expect(embeddedEngine('http://x')).rejects.toMatchObject({ code: 'invalid' })
  })
})

describe('file:', () => {
  it('keeps registers and the token counter over a restart, and frees the holds of the dead process', async () => {
    const dir = await folder()
    const first = createLocksOn(await embeddedEngine(`file:${dir}`), { ttl: '1h' })
    const hold = await first.acquire('a')
    await first.register('r').put({ x: 1 })
    await first.close()
    await using second = createLocksOn(await embeddedEngine(`file:${dir}`))
    const again = await second.acquire('a', { wait: 0 })
    expect(again.token).toBeGreaterThan(hold.token)
    expect((await second.register('r').get())?.value).toEqual({ x: 1 })
  })

  it('is one member for several clients of one process', async () => {
    const dir = await folder()
    await using one = createLocksOn(await embeddedEngine(`file:${dir}`))
    await using two = createLocksOn(await embeddedEngine(`file://${dir}`))
    await one.acquire('a')
    expect(await two.tryAcquire('a')).toBeNull()
  })
})
