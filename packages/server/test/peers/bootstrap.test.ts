import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { floorAt, InvalidError } from '@leasehold/core'
import { noopLogger } from '@leasehold/replica'
import { bootstrap, plainDialer, TcpTransport } from '@leasehold/server'
import { afterEach, describe, expect, it } from 'vitest'

const CLUSTER = 'ab'.repeat(16)
const NODE = 77

/** Bootstraps `n1` with an `n2` that reports the status that the test sets. */
class BootstrapRun {
  readonly #dir = mkdtempSync(join(tmpdir(), 'leasehold-bootstrap-'))
  readonly #controller = new AbortController()
  readonly #peers: TcpTransport[] = []

  async record(n2: object, options: { readonly epoch?: number; readonly floor?: number } = {}) {
    const one = await this.#listen()
    const two = await this.#listen()
    const list = new Map([one, two].map(({ address }, i) => [`n${i + 1}`, address]))
    const text = [...list].map(([name, address]) => `${name}=${address}`).join(',')
    const status = { name: 'n2', node: 88, url: 'http://n2', list: text, epoch: 1, ...n2 }
    two.peers.onRequest(async () => new TextEncoder().encode(JSON.stringify(status)))
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
    const peers = await TcpTransport.listen({ host: '127.0.0.1', port: 0 }, { dialer: plainDialer })
    this.#peers.push(peers)
    return { peers, address: `127.0.0.1:${peers.port}` }
  }
}

describe('bootstrap', () => {
  let run = new BootstrapRun()
  afterEach(async () => {
    await run.close()
    run = new BootstrapRun()
  })

  it('uses the floor of the clock and the highest feature level that all founders know', async () => {
    const before = floorAt(Date.now()) as number
    const { floor, level } = await run.record({ level: 2 })
    expect(level).toBe(2)
    expect(floor).toBeGreaterThanOrEqual(before)
    expect(floor).toBeLessThanOrEqual(floorAt(Date.now()) as number)
  })

  it('uses the floor of the options', async () => {
    expect(await run.record({ level: 2 }, { floor: 24 })).toMatchObject({ level: 2, floor: 24 })
  })

  it('uses level 1 and no floor with a founder of an older version', async () => {
    expect(await run.record({})).toMatchObject({ level: 1, floor: 0 })
  })

  it('rejects a record of a newer version', async () => {
    const founders = [{ node: NODE, name: 'n1', peer: '', url: '' }]
    const newer = { founding: { id: CLUSTER, epoch: 1, founders, level: 3 }, members: [NODE] }
    const error = await run.record(newer).catch((problem: unknown) => problem)
    expect(error).toBeInstanceOf(InvalidError)
    expect(error).toMatchObject({
      message: expect.stringContaining('founded at feature level 3'),
      hint: expect.stringContaining('newest version'),
    })
  })

  it('reads a record of an older version as level 1 without a floor', async () => {
    const founders = [{ node: NODE, name: 'n1', peer: '', url: '' }]
    const older = { founding: { id: CLUSTER, epoch: 1, founders }, members: [NODE] }
    expect(await run.record(older)).toMatchObject({ id: CLUSTER, level: 1, floor: 0 })
  })
})
