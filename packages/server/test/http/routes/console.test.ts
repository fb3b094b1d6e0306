import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { ensureConsole } from '../../../../../scripts/setup.mjs'
import { consolePage } from '../../../src/http/console-page.js'
import { serve } from '../../support/harness.js'

beforeAll(() => ensureConsole())

const MEMBERS = {
  members: [
    { node: 1, name: 'n1', peer: '', url: 'http://10.0.0.1:4100', role: 'voter', match: 1 },
    { node: 2, name: 'n2', peer: '', url: 'https://n2.example/', role: 'voter', match: 1 },
    { node: 3, name: 'n3', peer: '', url: '', role: 'learner', match: 1 },
  ],
  changeMembership: () => {},
  transferLeadership: () => {},
} as never

describe('the console', () => {
  it('is one document that loads nothing, and runs only its inline code', async () => {
    const { call } = await serve()
    const page = await call('GET', '/')
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.body).toContain('<title>Leasehold</title>')
    expect(page.body).not.toMatch(/<[^>]* (src|href)="(?!data:)/)
    expect(page.body).not.toMatch(/ (style|on[a-z]+)="/)
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/unsafe|\*/)
    expect(policy).toMatch(/connect-src 'self';/)
    for (const tag of ['script', 'style']) {
      const text = page.body.match(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`))?.[1] as string
      expect(policy).toContain(`${tag}-src 'sha256-${createHash('sha256').update(text).digest('base64')}'`)
    }
  })

  it('is small, and revalidated by its ETag', async () => {
    const { server, call } = await serve()
    const zipped = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { 'accept-encoding': 'gzip' } })
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    expect(zipped.headers.get('vary')).toBe('accept-encoding')
    expect(await zipped.text()).toContain('<title>Leasehold</title>')
    expect(consolePage()?.gzip.length).toBeLessThan(40_000)
    const etag = zipped.headers.get('etag') as string
    expect((await call('GET', '/', undefined, { 'if-none-match': etag })).status).toBe(304)
    expect((await call('GET', '/', undefined, { 'if-none-match': '"other"' })).status).toBe(200)
    expect((await call('POST', '/')).status).toBe(405)
  })

  it('may connect to the other members, and accepts requests of their pages', async () => {
    const { call, url } = await serve({ cluster: MEMBERS })
    const policy = (await call('GET', '/')).headers.get('content-security-policy')
    expect(policy).toContain("connect-src 'self' http://10.0.0.1:4100 https://n2.example;")
    const from = (origin: string) => fetch(`${url}/v1/locks`, { headers: { origin } })
    const allowed = await from('https://n2.example')
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([200, 'https://n2.example'])
    expect((await from('https://n3.example')).status).toBe(403)
  })

  it('reports when it was not built', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-console-'))
    try {
      expect(consolePage(pathToFileURL(join(folder, 'index.html')))).toBeUndefined()
      expect(() => consolePage(pathToFileURL(folder))).toThrow(/EISDIR/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
