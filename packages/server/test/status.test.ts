import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { serve, until } from './support/harness.js'

const chromium = [process.env.LEASEHOLD_CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/google-chrome'].find(existsSync)

/** The document as a browser has it after `ms`. */
async function dom(url: string, ms: number): Promise<string> {
  const profile = mkdtempSync(join(tmpdir(), 'leasehold-chromium-'))
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync']
  try {
    return await new Promise((resolve, reject) => {
      const args = [...flags, ...quiet, `--user-data-dir=${profile}`, `--virtual-time-budget=${ms}`, '--dump-dom', url]
      execFile(chromium as string, args, { timeout: 30_000 }, (error, stdout) =>
        error ? reject(error) : resolve(stdout),
      )
    })
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

describe('the status page', () => {
  it('has its own script and style, and may load nothing else', async () => {
    const { call } = await serve()
    const page = await call('GET', '/')
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.body).toContain('<title>Leasehold</title>')
    expect(page.body).not.toMatch(/(src|href)="(?!data:)/)
    const policy = page.headers.get('content-security-policy') ?? ''
    for (const tag of ['script', 'style']) {
      const text = page.body.match(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`))?.[1] as string
      expect(policy).toContain(`${tag}-src 'sha256-${createHash('sha256').update(text).digest('base64')}'`)
    }
  })

  it.skipIf(chromium === undefined)('shows holds and waiters as text in a browser (needs Chromium)', async () => {
    const { post, get, url } = await serve()
    await post('/v1/acquire', { name: 'billing/<b>bold</b>', client: 'worker-a', ttl: '1m' })
    const waiting = post('/v1/acquire', { name: 'billing/<b>bold</b>', client: 'worker-b', ttl: '1m', wait: '1m' })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    const text = await dom(url, 4_000)
    expect(text).toContain('billing/&lt;b&gt;bold&lt;/b&gt;')
    expect(text).toContain('worker-a')
    expect(text).toContain('worker-b')
    expect(text).toMatch(/class="pill live"[^>]*>live</)
    await post('/v1/steal', { name: 'billing/<b>bold</b>', reason: 'test' })
    expect((await waiting).status).toBe(200)
  })
})
