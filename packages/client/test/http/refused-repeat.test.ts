import { describe, expect, it } from 'vitest'
import { HttpEngine } from '../../src/http/http-engine.js'
import type { Fetch } from '../../src/http/fetch.js'

interface Asked {
  readonly path: string
  readonly body: Record<string, unknown>
}

/** A service whose first answer to each path of `refused` is lost, and which has no room for the repeat. */
function crowded(refused: readonly string[]): { readonly fetch: Fetch; readonly asked: Asked[] } {
  const asked: Asked[] = []
  const answer = (status: number, body: object) => {
    const text = JSON.stringify({ cluster: 'c', epoch: 1, ...body })
    const bytes = new TextEncoder().encode(text)
    return { status, headers: { get: () => null }, text: async () => text, arrayBuffer: async () => bytes.buffer }
  }
  const fetch: Fetch = async (url, init) => {
    const path = new URL(url).pathname
    asked.push({ path, body: JSON.parse(init.body ?? '{}') as Record<string, unknown> })
    if (path === '/v1/sessions') return answer(200, { session: 'handle', id: '281474976710657', ttlMs: 30_000 })
    if (!refused.includes(path)) return answer(200, {})
    if (asked.filter((one) => one.path === path).length === 1) throw new TypeError('the connection was cut')
    return answer(507, { code: 'storage', detail: 'the disk is full' })
  }
  return { fetch, asked }
}

async function sessionOf(refused: readonly string[]) {
  const { fetch, asked } = crowded(refused)
  const engine = new HttpEngine({ urls: ['http://service.invalid'], fetch })
  return { asked, session: await engine.openSession({ ttlMs: 30_000, client: '', timeoutMs: 5_000 }) }
}

describe('a repeat over HTTP that is refused for want of room', () => {
  it('an acquire may have been granted, and is undone', async () => {
    const { session, asked } = await sessionOf(['/v1/acquire'])
    const acquire = session.acquire({
      locks: [{ name: 'a', mode: 'exclusive' }],
      waitMs: 10_000,
      lockDelayMs: 0,
      persistent: false,
      portable: false,
      data: new Uint8Array(0),
    })
    await expect(acquire).rejects.toMatchObject({ code: 'storage' })
    await expect.poll(() => asked.filter(({ path }) => path === '/v1/cancel')).toMatchObject([{ body: { request: 1 } }])
  })

  it('a put may have been done', async () => {
    const { session } = await sessionOf(['/v1/registers/k', '/v1/registers'])
    const put = session.put({ key: 'k', value: new Uint8Array(1), timeoutMs: 10_000 })
    await expect(put).rejects.toMatchObject({ code: 'unknown-outcome', cause: { code: 'storage' } })
  })
})

it('a repeated steal succeeds when the sending with the lost answer has stolen the hold', async () => {
  const text = JSON.stringify({ code: 'not-holder', detail: 'it does not exist' })
  let sendings = 0
  const fetch: Fetch = async () => {
    if (++sendings === 1) throw new TypeError('the connection was cut')
    const arrayBuffer = async () => new TextEncoder().encode(text).buffer
    return { status: 404, headers: { get: () => null }, text: async () => text, arrayBuffer }
  }
  const engine = new HttpEngine({ urls: ['http://service.invalid'], fetch })
  const options = { actor: 'operator', reason: '', timeoutMs: 5_000 }
  await engine.steal(281474976710657n, options)
  await expect(engine.steal(281474976710657n, options)).rejects.toMatchObject({ code: 'not-holder' })
})
