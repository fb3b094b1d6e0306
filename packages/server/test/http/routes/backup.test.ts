import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AccessError } from '@leasehold/core'
import { readBackup } from '@leasehold/replica/node'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { serve } from '../../support/harness.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-backup-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function download(url: string): Promise<ReturnType<typeof readBackup>> {
  const response = await fetch(url)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/octet-stream'])
  const bytes = Buffer.from(await response.arrayBuffer())
  expect(bytes.length).toBe(Number(response.headers.get('content-length')))
  const file = join(folder, 'backup')
  writeFileSync(file, bytes)
  const backup = readBackup(file)
  expect(response.headers.get('leasehold-index')).toBe(String(backup.header.index))
  return backup
}

describe('GET /v1/backup', () => {
  test('returns everything that was acknowledged before, in several pieces', async () => {
    const { url, post, member } = await serve()
    for (let i = 0; i < 80; i++) {
      const done = await post('/v1/acquire', { name: `big/${i}`, ttl: '60s', data: 'x'.repeat(4000) })
      expect(done.status).toBe(200)
    }
    const { header, state } = await download(`${url}/v1/backup`)
    expect(header).toMatchObject({
      cluster: 'test-cluster',
      epoch: 1,
      member: 'n1',
      read: 'linearizable',
      members: [{ name: 'n1' }],
    })
    expect(header.stateBytes).toBeGreaterThan(300_000)
    expect(state.machine.holds.size).toBe(80)
    expect(header.index).toBeLessThanOrEqual(member.index)
  })

  test('fails without a quorum, and with stale returns the applied state, marked as stale', async () => {
    const { url, get, member } = await serve()
    member.refusal = { kind: 'refused', code: 'no-quorum', message: 'this member does not lead' }
    expect(await get('/v1/backup')).toMatchObject({ status: 503, body: { code: 'no-quorum' } })
    expect((await download(`${url}/v1/backup?stale=true`)).header.read).toBe('stale')
  })

  test('requires the permission of an administrator', async () => {
    const verbs: string[] = []
    const { get } = await serve({
      authorize: ({ verb }) => {
        verbs.push(verb)
        throw new AccessError('no', { code: 'forbidden' })
      },
    })
    expect(await get('/v1/backup')).toMatchObject({ status: 403 })
    expect(verbs).toEqual(['admin'])
  })

  test('allows two backups at a time, and counts none whose client disconnected', async () => {
    const { url, post } = await serve()
    // Far more than the buffers of two sockets.
    for (let i = 0; i < 256; i++) {
      const value = Buffer.alloc(65_000, i % 256).toString('base64')
      const put = { value, encoding: 'base64' }
      const done = await fetch(`${url}/v1/registers?key=r/${i}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(put),
      })
      expect(done.status).toBe(200)
    }
    expect((await post('/v1/acquire', { name: 'x' })).status).toBe(200)
    // The first two are not read: their pieces wait.
    const leave = new AbortController()
    const slow = [await fetch(`${url}/v1/backup`, { signal: leave.signal }), await fetch(`${url}/v1/backup`)]
    const third = await fetch(`${url}/v1/backup`)
    expect([third.status, await third.json()]).toMatchObject([429, { code: 'limit' }])
    leave.abort()
    let status = 0
    for (let attempt = 0; attempt < 1_000 && status !== 200; attempt++) {
      await new Promise((done) => setTimeout(done, 20))
      const again = await fetch(`${url}/v1/backup`)
      status = again.status
      await again.arrayBuffer()
    }
    expect(status).toBe(200)
    expect((await slow[1]?.arrayBuffer())?.byteLength).toBeGreaterThan(16_000_000)
  })
})
