import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../src/http/fetch.js'
import { HttpEngine } from '../../src/http/http-engine.js'

type Member = 'leads' | 'silent' | 'gone' | { readonly redirects: string }

/** Members by their host. */
function fetchFrom(members: Readonly<Record<string, () => Member>>): {
  readonly fetch: Fetch
  readonly asked: string[]
} {
  const asked: string[] = []
  const fetch: Fetch = async (url, { signal }) => {
    const { hostname } = new URL(url)
    asked.push(hostname)
    const member = members[hostname]?.()
    if (member === undefined || member === 'gone') throw new TypeError('fetch failed')
    if (member === 'silent') {
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')))
      })
    }
    const redirect = typeof member === 'object' ? member.redirects : null
    const text = JSON.stringify({ cluster: 'c', epoch: 1, session: 'handle', id: '281474976710657', ttlMs: 9_000 })
    return {
      status: redirect === null ? 200 : 307,
      headers: { get: (name) => (name === 'location' ? redirect : null) },
      text: async () => text,
      arrayBuffer: async () => new TextEncoder().encode(text).buffer,
    }
  }
  return { fetch, asked }
}

async function openOn(urls: readonly string[], fetch: Fetch): Promise<number> {
  const engine = new HttpEngine({ urls, fetch })
  const began = performance.now()
  await engine.openSession({ ttlMs: 9_000, client: '', timeoutMs: 8_000 })
  const tookMs = performance.now() - began
  await engine.close()
  return tookMs
}

describe('redirects over HTTP that lead nowhere', () => {
  const toDead = () => ({ redirects: 'http://dead.invalid' })

  it('tries the other URLs when the named leader is gone', async () => {
    const { fetch } = fetchFrom({ 'a.invalid': toDead, 'b.invalid': () => 'leads', 'dead.invalid': () => 'gone' })
    expect(await openOn(['http://a.invalid', 'http://b.invalid'], fetch)).toBeLessThan(1_000)
  })

  it('follows a redirect to a silent leader once, also when several members name it', async () => {
    const { fetch, asked } = fetchFrom({
      'a.invalid': toDead,
      'b.invalid': toDead,
      'c.invalid': () => 'leads',
      'dead.invalid': () => 'silent',
    })
    const urls = ['http://a.invalid', 'http://b.invalid', 'http://c.invalid']
    expect(await openOn(urls, fetch)).toBeLessThan(3_000)
    expect(asked.filter((host) => host === 'dead.invalid')).toHaveLength(1)
  })

  it('asks a balancer again, which chooses another member', async () => {
    let requests = 0
    const { fetch } = fetchFrom({
      'balancer.invalid': () => (++requests < 3 ? toDead() : 'leads'),
      'dead.invalid': () => 'silent',
    })
    expect(await openOn(['http://balancer.invalid'], fetch)).toBeLessThan(5_000)
  })
})
