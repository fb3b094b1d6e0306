import { execFile, spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { serve } from '../support/harness.js'

const hasCurl = spawnSync('curl', ['--version']).status === 0

/** Runs a shell command line, with `$URL` set. */
function sh(line: string, env: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('sh', ['-ec', line], { env: { ...process.env, ...env }, timeout: 50_000 }, (error, stdout) => {
      if (error) reject(error)
      else resolve(stdout)
    })
  })
}

describe.skipIf(!hasCurl)('curl is enough (needs curl)', () => {
  const json = "-H 'content-type: application/json'"

  it('acquires, renews and releases a lock', async () => {
    const { url } = await serve()
    const env = { URL: url }
    const got = JSON.parse(
      await sh(`curl -sf "$URL/v1/acquire" ${json} -d '{"name":"billing/invoice-42","ttl":"30s","wait":"5s"}'`, env),
    )
    expect(got.token).toMatch(/^[0-9]+$/)
    const held = { ...env, HOLD: got.hold }
    expect(
      JSON.parse(await sh(`curl -sf "$URL/v1/renew" ${json} -d "{\\"hold\\":\\"$HOLD\\"}"`, held)).expiresInMs,
    ).toBeGreaterThan(20_000)
    expect(JSON.parse(await sh('curl -sfG "$URL/v1/locks" --data-urlencode "prefix=billing/"', env)).held).toHaveLength(
      1,
    )
    expect(
      JSON.parse(await sh(`curl -sf "$URL/v1/release" ${json} -d "{\\"hold\\":\\"$HOLD\\"}"`, held)).released,
    ).toBe(true)
  })

  it('reports an error by its status, with the problem as body', async () => {
    const { url } = await serve()
    const env = { URL: url }
    await sh(`curl -sf "$URL/v1/acquire" ${json} -d '{"name":"a"}'`, env)
    const out = await sh(`curl -s -w '%{http_code}' "$URL/v1/acquire" ${json} -d '{"name":"a","wait":0}'`, env)
    const [body, code] = out.trim().split('\n')
    expect(code).toBe('409')
    expect(JSON.parse(body as string)).toMatchObject({ code: 'busy', retryable: true })
  })

  it('writes a register, and watches', async () => {
    const { url } = await serve()
    const env = { URL: url }
    const put = JSON.parse(
      await sh(
        `curl -sf -X PUT "$URL/v1/registers?key=config/flags&ifVersion=0" ${json} -d '{"value":{"dark":true}}'`,
        env,
      ),
    )
    expect(await sh('curl -sf "$URL/v1/registers?key=config/flags" -H "accept: application/octet-stream"', env)).toBe(
      '{"dark":true}',
    )
    await sh(
      `curl -sf -X PUT "$URL/v1/registers?key=config/flags" -H 'if-match: "${put.version}"' --data-binary 'off'`,
      env,
    )
    const watched = await sh('curl -sN --max-time 4 "$URL/v1/watch?prefix=config/&from=1.0.0" || true', env)
    expect(watched.match(/^event: put$/gm)).toHaveLength(2)
    expect(watched).toMatch(/^id: 1\.\d+\.\d+$/m)
  })
})
