import { expect, it } from 'vitest'
import { HttpEngine } from '../../src/http/http-engine.js'
import type { Fetch } from '../../src/http/fetch.js'
import type { Connector } from '../../src/protocol/channel.js'
import { ProtocolEngine } from '../../src/protocol/protocol-engine.js'

it('two members that are silent do not use up the time in which the third could be found', async () => {
  const tried: string[] = []
  const connector: Connector = {
    connect(url, events) {
      tried.push(url)
      if (url === 'http://c.invalid') setImmediate(() => events.opened())
      return {
        buffered: 0,
        close() {},
        send() {
          const welcome = { version: 1, cluster: 'c', epoch: 1, member: 'c', leaderUrl: '', urls: [] } as const
          setImmediate(() => events.received([{ kind: 'welcome', ...welcome }]))
        },
      }
    },
  }
  const urls = ['http://a.invalid', 'http://b.invalid', 'http://c.invalid']
  const engine = new ProtocolEngine({ urls, connector })
  const start = performance.now()
  await engine.connect(10_000)
  expect(tried).toEqual(urls)
  // With the two seconds that an attempt may take at most it would be more than four.
  expect(performance.now() - start).toBeLessThan(3_500)
  await engine.close()
})

it('a member that becomes silent after its welcome does not use up the time in which another could answer', async () => {
  const connector: Connector = {
    connect(url, events) {
      setImmediate(() => events.opened())
      return {
        buffered: 0,
        close() {},
        send(messages) {
          for (const message of messages) {
            if (message.kind === 'hello') {
              const welcome = { version: 1, cluster: 'c', epoch: 1, member: 'm', leaderUrl: '', urls: [] } as const
              setImmediate(() => events.received([{ kind: 'welcome', ...welcome }]))
            } else if (url === 'http://b.invalid' && message.kind === 'command') {
              const { correlation } = message
              const result = {
                kind: 'opened',
                session: 1 as never,
                secret: '0'.repeat(32),
                ttlMs: 9_000 as never,
              } as const
              setImmediate(() => events.received([{ kind: 'result', correlation, result }]))
            }
          }
        },
      }
    },
  }
  const engine = new ProtocolEngine({ urls: ['http://a.invalid', 'http://b.invalid'], connector })
  const session = await engine.openSession({ ttlMs: 9_000, client: '', timeoutMs: 8_000 })
  expect(session.ttlMs).toBe(9_000)
  await engine.close()
})

it('nor does one that is silent over HTTP', async () => {
  const fetch: Fetch = async (url, init) => {
    if (url.startsWith('http://a.invalid')) {
      await new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')))
      })
    }
    const text = JSON.stringify({ cluster: 'c', epoch: 1, session: 'handle', id: '281474976710657', ttlMs: 9_000 })
    const bytes = new TextEncoder().encode(text)
    return { status: 200, headers: { get: () => null }, text: async () => text, arrayBuffer: async () => bytes.buffer }
  }
  const engine = new HttpEngine({ urls: ['http://a.invalid', 'http://b.invalid'], fetch })
  const start = performance.now()
  const session = await engine.openSession({ ttlMs: 9_000, client: '', timeoutMs: 8_000 })
  expect(session.ttlMs).toBe(9_000)
  // With an attempt of its own for as long as there is time it would be eight seconds.
  expect(performance.now() - start).toBeLessThan(6_000)
  await engine.close()
})
