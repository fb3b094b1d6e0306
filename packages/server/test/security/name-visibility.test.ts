import type { ClientMessage } from '@leasehold/core'
import { describe, expect, test } from 'vitest'
import { type Harness, serve, until } from '../support/harness.js'
import { bearer, useKeyFile } from '../support/keys.js'
import { openStream } from '../support/raw-stream.js'

const keys = useKeyFile()

/** Opens a stream; `text` returns everything that it received so far. */
async function watchAs(url: string, key: string, ...messages: ClientMessage[]) {
  const { socket, received } = await openStream(url, key, ...messages)
  const text = () =>
    JSON.stringify(received, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return { socket, text }
}

/** Acquires two locks with a second acquire waiting for both, and releases them. */
async function handOverLocks({ call, member }: Harness, good: string): Promise<void> {
  const locks = ['billing/1', 'payroll/secret']
  const { body } = await call('POST', '/v1/acquire', { locks }, bearer(good))
  const waiting = call('POST', '/v1/acquire', { locks, wait: '60s' }, bearer(good))
  await until(() => member.state.machine.waiters.size === 1)
  await call('POST', '/v1/release', { hold: body.hold }, bearer(good))
  await waiting
}

describe('names of a hold that a key may not read', () => {
  const watch: ClientMessage = { kind: 'watch', correlation: 1, prefix: 'billing' }
  const queries: ClientMessage[] = [
    { kind: 'query', correlation: 2, query: { prefix: 'billing' }, stale: false },
    { kind: 'query', correlation: 3, query: { name: 'billing/1' }, stale: true },
  ]

  test.each([
    ['billing:read', false],
    ['*:read', true],
  ])('are hidden over HTTP, with %s', async (rule, knows) => {
    const [mine, good] = [keys.create(rule).text, keys.create('*:acquire,read').text]
    const harness = await serve({ keys: keys.file })
    const from = (await harness.call('GET', '/v1/locks?prefix=billing', undefined, bearer(mine))).body.at as string
    await handOverLocks(harness, good)
    for (const asked of ['prefix=billing', 'name=billing/1']) {
      const { body } = await harness.call('GET', `/v1/locks?${asked}`, undefined, bearer(mine))
      expect(body.held).toHaveLength(1)
      expect(JSON.stringify(body)).toContain('billing/1')
      expect(JSON.stringify(body).includes('payroll')).toBe(knows)
    }
    const stop = new AbortController()
    const events = await fetch(`${harness.url}/v1/watch?prefix=billing&from=${from}`, {
      headers: bearer(mine),
      signal: stop.signal,
    })
    let text = ''
    for await (const part of events.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(part).toString()
      // Acquired, queued for, released and acquired again.
      if (text.split('event: held').length > 2) break
    }
    for (const kind of ['held', 'queued', 'freed']) expect(text).toContain(`event: ${kind}`)
    expect([text.includes('billing/1'), text.includes('payroll')]).toEqual([true, knows])
  })

  test.each([
    ['billing:read', false],
    ['*:read', true],
  ])('are hidden over a stream, with %s', async (rule, knows) => {
    const [mine, good] = [keys.create(rule).text, keys.create('*:acquire,read').text]
    const harness = await serve({ keys: keys.file })
    const { epoch } = harness.member.status
    const live = await watchAs(harness.url, mine, watch)
    await handOverLocks(harness, good)
    const from = { epoch, index: 1 as never, ordinal: 0 }
    const past = await watchAs(harness.url, mine, { ...watch, from }, ...queries)
    for (const { text } of [live, past]) {
      await until(() => text().split('"kind":"held"').length > 2)
      expect([text().includes('billing/1'), text().includes('queued'), text().includes('freed')]).toEqual([
        true,
        true,
        true,
      ])
      expect(text().includes('payroll')).toBe(knows)
    }
    await until(() => past.text().split('queryAnswer').length === 3)
    expect(past.text().includes('payroll')).toBe(knows)
    live.socket.terminate()
    past.socket.terminate()
  })
})
