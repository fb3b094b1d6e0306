import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ClientMessage, decodeServerMessages, encodeClientMessages, STREAM_VERSION } from '@leasehold/core'
import { createKey } from '@leasehold/server'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import WebSocket from 'ws'
import { type Harness, serve, until } from '../support/harness.js'

let folder: string
let keys: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-sight-'))
  keys = join(folder, 'keys.json')
})
afterEach(() => rmSync(folder, { recursive: true }))

const bearer = (text: string) => ({ 'content-type': 'application/json', authorization: `Bearer ${text}` })
const key = (...rules: string[]) => createKey(keys, { name: 'test', rules }, new Date()).text

/** All that a stream is told, as text. */
async function told(url: string, apiKey: string, ...messages: ClientMessage[]) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`)
  const got: ReturnType<typeof decodeServerMessages>[number][] = []
  socket.on('message', (data: Buffer) => got.push(...decodeServerMessages(data)))
  await new Promise((resolve) => socket.once('open', resolve))
  const hello = { kind: 'hello', version: STREAM_VERSION, apiKey, client: '', epoch: 0 } as const
  socket.send(encodeClientMessages([hello, ...messages]))
  const text = () => JSON.stringify(got, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  // What came with the greeting is taken before anything that is done from now on.
  await until(() => got.length > 0)
  return { socket, text }
}

/** Somebody holds two locks, another waits for both, and the first gives them back. */
async function move({ call, member }: Harness, good: string): Promise<void> {
  const locks = ['billing/1', 'payroll/secret']
  const { body } = await call('POST', '/v1/acquire', { locks }, bearer(good))
  const waiting = call('POST', '/v1/acquire', { locks, wait: '60s' }, bearer(good))
  await until(() => member.state.machine.waiters.size === 1)
  await call('POST', '/v1/release', { hold: body.hold }, bearer(good))
  await waiting
}

describe('the names of a hold that a key may not read are not told', () => {
  const watch: ClientMessage = { kind: 'watch', correlation: 1, prefix: 'billing' }
  const queries: ClientMessage[] = [
    { kind: 'query', correlation: 2, query: { prefix: 'billing' }, stale: false },
    { kind: 'query', correlation: 3, query: { name: 'billing/1' }, stale: true },
  ]

  test.each([
    ['billing:read', false],
    ['*:read', true],
  ])('over HTTP, with %s', async (rule, knows) => {
    const [mine, good] = [key(rule), key('*:acquire,read')]
    const harness = await serve({ keys })
    const from = (await harness.call('GET', '/v1/locks?prefix=billing', undefined, bearer(mine))).body.at as string
    await move(harness, good)
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
      // Taken, waited for, given back and taken again.
      if (text.split('event: held').length > 2) break
    }
    for (const kind of ['held', 'queued', 'freed']) expect(text).toContain(`event: ${kind}`)
    expect([text.includes('billing/1'), text.includes('payroll')]).toEqual([true, knows])
  })

  test.each([
    ['billing:read', false],
    ['*:read', true],
  ])('over a stream, with %s', async (rule, knows) => {
    const [mine, good] = [key(rule), key('*:acquire,read')]
    const harness = await serve({ keys })
    const { epoch } = harness.member.status
    const live = await told(harness.url, mine, watch)
    await move(harness, good)
    const from = { epoch, index: 1 as never, ordinal: 0 }
    const past = await told(harness.url, mine, { ...watch, from }, ...queries)
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
