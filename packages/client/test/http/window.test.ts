import { expect, it } from 'vitest'
import { HttpEngine } from '../../src/http/http-engine.js'
import type { Fetch } from '../../src/http/fetch.js'

const ACQUIRE = {
  locks: [{ name: 'a', mode: 'exclusive' }],
  waitMs: 0,
  lockDelayMs: 0,
  persistent: false,
  portable: false,
  data: new Uint8Array(0),
} as const

/** A service that grants what does not wait, and keeps the rest waiting. Tells the numbers of the requests that it has seen. */
function service(): { readonly fetch: Fetch; readonly numbers: number[] } {
  const numbers: number[] = []
  const answer = (body: object) => {
    const text = JSON.stringify({ cluster: 'c', epoch: 1, ...body })
    const bytes = new TextEncoder().encode(text)
    return { status: 200, headers: { get: () => null }, text: async () => text, arrayBuffer: async () => bytes.buffer }
  }
  const fetch: Fetch = async (url, init) => {
    const path = new URL(url).pathname
    const body = JSON.parse(init.body ?? '{}') as Record<string, unknown>
    if (path === '/v1/sessions') return answer({ session: 'handle', id: '281474976710657', ttlMs: 30_000 })
    numbers.push(Number(body.number ?? body.request))
    if (path === '/v1/acquire' && body.wait !== '0ms') {
      await new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')))
      })
    }
    if (path !== '/v1/acquire') return answer({ was: 'queued', version: '1' })
    return answer({ hold: 'h', id: String(body.request), locks: [{ name: 'a', mode: 'exclusive', token: '1' }] })
  }
  return { fetch, numbers }
}

it('a waiter that blocks the request numbers of a session over HTTP can still be cancelled, and others use another session', async () => {
  const { fetch, numbers } = service()
  const engine = new HttpEngine({ urls: ['http://service.invalid'], fetch })
  const session = await engine.openSession({ ttlMs: 30_000, client: '', timeoutMs: 5_000 })
  const controller = new AbortController()
  const waiting = session.acquire({ ...ACQUIRE, waitMs: Number.POSITIVE_INFINITY, signal: controller.signal })
  waiting.catch(() => {})
  while (!session.congested) await session.acquire(ACQUIRE)
  expect(numbers.length).toBeLessThan(450)
  await expect(session.acquire(ACQUIRE)).rejects.toMatchObject({ code: 'limit' })
  await expect(session.put({ key: 'k', value: new Uint8Array(1), timeoutMs: 1_000 })).rejects.toMatchObject({
    code: 'limit',
  })
  controller.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' })
  await expect.poll(() => session.congested).toBe(false)
  expect(Math.max(...numbers)).toBeLessThan(512)
  expect(await session.acquire(ACQUIRE)).toMatchObject({ locks: [{ name: 'a' }] })
  await engine.close()
})
