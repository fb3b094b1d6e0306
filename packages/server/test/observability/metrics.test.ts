import { describe, expect, test } from 'vitest'
import { serve, until } from '../support/harness.js'
import { useKeyFile } from '../support/keys.js'
import { dataFolder, startReplicaServer } from '../support/replica-server.js'

const keys = useKeyFile()

/** Parses the text format of Prometheus: name and labels → value. */
function parse(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

async function metrics(url: string): Promise<Map<string, number>> {
  const response = await fetch(`${url}/metrics`)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain')])
  return parse(await response.text())
}

describe('metrics', () => {
  test('count requests, grants, refusals and ends, and measure waits and holds', async () => {
    const { url, post } = await serve()
    const { body: first } = await post('/v1/acquire', { name: 'a' })
    const waiting = post('/v1/acquire', { name: 'a', wait: '10s' })
    await until(async () => (await metrics(url)).get('leasehold_waiters') === 1)
    expect((await post('/v1/acquire', { name: 'a', wait: 0 })).status).toBe(409)
    await post('/v1/release', { hold: first.hold })
    const { body: second } = await waiting
    await post('/v1/release', { hold: second.hold })
    const now = await metrics(url)
    const of = (name: string) => now.get(`leasehold_${name}`)
    expect(of('grants_total')).toBe(2)
    expect(of('holds_ended_total{reason="released"}')).toBe(2)
    expect(of('requests_total{operation="POST /v1/acquire"}')).toBe(3)
    expect(of('requests_refused_total{code="busy"}')).toBe(1)
    expect(of('wait_seconds_count')).toBe(1)
    expect(of('hold_seconds_count')).toBe(2)
    expect(of('holds')).toBe(0)
    expect(of('commands_applied_total')).toBeGreaterThan(5)
    expect(of('role{role="leader"}')).toBe(1)
    expect(of('has_leader')).toBe(1)
    expect(now.has('leasehold_nodejs_eventloop_lag_p99_seconds')).toBe(true)
  })

  test('include the fsyncs of a replica', async () => {
    const { url, post, stop } = await startReplicaServer(dataFolder())
    try {
      for (let i = 0; i < 5; i++) await post('/v1/acquire', { name: `n${i}` })
      const now = await metrics(url)
      expect(now.get('leasehold_fsync_seconds_count')).toBeGreaterThanOrEqual(5)
      expect(now.get('leasehold_fsync_seconds_sum')).toBeGreaterThan(0)
      expect(now.get('leasehold_commit_index')).toBe(now.get('leasehold_applied_index'))
    } finally {
      await stop()
    }
  })

  test('require the permission to read everything', async () => {
    const [some, all] = ['billing:read', '*:read'].map((rule) => keys.create(rule).text)
    const { url } = await serve({ keys: keys.file })
    const ask = async (key: string) =>
      (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } })).status
    expect([await ask(''), await ask(some as string), await ask(all as string)]).toEqual([401, 403, 200])
  })
})
