import { describe, expect, test } from 'vitest'
import { Cli } from './support/cli.js'

describe('leasehold lab serve', () => {
  test('serves only the files of the page, and stops at a signal', async () => {
    const cli = new Cli(['lab', 'serve'])
    await cli.printed('the lab is at ')
    const url = /http:\S+/.exec(cli.stdout)?.[0] as string
    const page = await fetch(url)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'self'/)
    const text = await page.text()
    const files = [...text.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((match) => match[1])
    expect(files.length).toBe(2)
    for (const file of files) expect((await fetch(`${url}${file}`)).status).toBe(200)
    for (const other of ['.stamp', 'assets/', '..%2f..%2fpackage.json', 'assets/../../../package.json', 'nothing.js']) {
      expect((await fetch(`${url}${other}`)).status, other).toBe(404)
    }
    expect((await fetch(url, { method: 'POST' })).status).toBe(405)
    cli.kill('SIGTERM')
    expect(await cli.finished).toMatchObject({ code: 0 })
  })

  test('reports an address in use with a hint', async () => {
    const { code, stderr } = await new Cli(['lab', 'serve', '--listen', '192.0.2.1:1']).finished
    expect(code).toBe(69)
    expect(stderr).toMatch(/cannot listen on 192\.0\.2\.1:1[\s\S]*--listen/)
    expect((await new Cli(['lab', 'serve', '--listen', 'here']).finished).code).toBe(64)
  })
})
