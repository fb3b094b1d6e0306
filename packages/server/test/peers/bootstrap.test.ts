import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { floorAt, InvalidError } from '@leasehold/core'
import { noopLogger } from '@leasehold/replica'
import { bootstrap, plainDialer, TcpTransport } from '@leasehold/server'
import { afterEach, describe, expect, it } from 'vitest'

const CLUSTER = 'ab'.repeat(16)
const NODE = 77

/** The founding of `n1` beside an `n2` that says of itself what the test lets it say. */
class Founding {
  readonly #dir = mkdtempSync(join(tmpdir(), 'leasehold-founding-'))
  readonly #controller = new AbortController()
  readonly #peers: TcpTransport[] = []

  async record(n2: object, options: { readonly epoch?: number; readonly floor?: number } = {}) {
    const one = await this.#listen()
    const two = await this.#listen()
    const list = new Map([one, two].map(({ address }, i) => [`n${i + 1}`, address]))
    const text = [...list].map(([name, address]) => `${name}=${address}`).join(',')
    const standing = { name: 'n2', node: 88, url: 'http://n2', list: text, epoch: 1, ...n2 }
    two.peers.onQuestion(async () => new TextEncoder().encode(JSON.stringify(standing)))
    writeFileSync(join(this.#dir, 'muster.json'), JSON.stringify({ node: NODE }))
    const { signal } = this.#controller
    return await bootstrap({
      ...{ dir: this.#dir, name: 'n1', url: 'http://n1', list, peers: one.peers, log: noopLogger, signal },
      ...options,
    })
  }

  async close(): Promise<void> {
    this.#controller.abort()
    await Promise.all(this.#peers.map((peers) => peers.close()))
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #listen(): Promise<{ peers: TcpTransport; address: string }> {
    const peers = await TcpTransport.listen({ host: '127.0.0.1', port: 0 }, plainDialer)
    this.#peers.push(peers)
    return { peers, address: `127.0.0.1:${peers.port}` }
  }
}

describe('the founding record', () => {
  let founding = new Founding()
  afterEach(async () => {
    await founding.close()
    founding = new Founding()
  })

  it('has the floor of the clock, and the highest feature level, when all founders know it', async () => {
    const before = floorAt(Date.now()) as number
    const { floor, level } = await founding.record({ level: 2 })
    expect(level).toBe(2)
    expect(floor).toBeGreaterThanOrEqual(before)
    expect(floor).toBeLessThanOrEqual(floorAt(Date.now()) as number)
  })

  it('has a floor that was asked for instead', async () => {
    expect(await founding.record({ level: 2 }, { floor: 24 })).toMatchObject({ level: 2, floor: 24 })
  })

  it('has neither beside a founder of an older version, which would found another state', async () => {
    expect(await founding.record({})).toMatchObject({ level: 1, floor: 0 })
  })

  it('is refused when a newer version wrote it', async () => {
    const founders = [{ node: NODE, name: 'n1', peer: '', url: '' }]
    const newer = { founding: { id: CLUSTER, epoch: 1, founders, level: 3 }, members: [NODE] }
    const error = await founding.record(newer).catch((problem: unknown) => problem)
    expect(error).toBeInstanceOf(InvalidError)
    expect(error).toMatchObject({
      message: expect.stringContaining('founded at feature level 3'),
      hint: expect.stringContaining('newest version'),
    })
  })

  it('of an older version means level 1 and no floor', async () => {
    const founders = [{ node: NODE, name: 'n1', peer: '', url: '' }]
    const older = { founding: { id: CLUSTER, epoch: 1, founders }, members: [NODE] }
    expect(await founding.record(older)).toMatchObject({ id: CLUSTER, level: 1, floor: 0 })
  })
})
