import { connect } from 'node:net'
import { type Command, formatCursor, type Millis, parseCursor, type Result, type SessionId } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { serve, until } from '../../support/harness.js'
import type { LocalMember } from '../../support/local-member.js'

interface Received {
  event: string
  id: string
  // Tests check the fields of the JSON themselves.
  // oxlint-disable-next-line typescript/no-explicit-any
  data: any
}

/** A reader of server-sent events, like that of a browser. */
async function watch(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ events: Received[]; close(): void; done: Promise<void> }> {
  const controller = new AbortController()
  const response = await fetch(url, { headers, signal: controller.signal })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const events: Received[] = []
  const done = (async () => {
    let text = ''
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const fields = Object.fromEntries(
          text
            .slice(0, end)
            .split('\n')
            .map((line) => line.split(/: (.*)/s, 2)),
        )
        text = text.slice(end + 2)
        if (fields.event !== undefined)
          events.push({ event: fields.event, id: fields.id, data: JSON.parse(fields.data) })
      }
    }
  })().catch(() => {})
  return { events, close: () => controller.abort(), done }
}

function submit(member: LocalMember, command: Command): Promise<Result> {
  return new Promise((resolve) => member.submit(command, resolve))
}

describe('a watch', () => {
  it('delivers grants, ends, queues and registers below its prefix, in order', async () => {
    const { url, post, call } = await serve()
    const stream = await watch(`${url}/v1/watch?prefix=account/1`)
    const other = await post('/v1/acquire', { name: 'account/10' })
    const one = await post('/v1/acquire', { name: 'account/1', client: 'ann' })
    const waiting = post('/v1/acquire', { name: 'account/1', wait: '10s' })
    await until(() => stream.events.some((event) => event.event === 'queued'))
    await post('/v1/release', { hold: one.body.hold })
    await waiting
    await post('/v1/steal', { name: 'account/1', reason: 'why', actor: 'bob' })
    await call('PUT', '/v1/registers?key=account/1/note', { value: 1 })
    await until(() => stream.events.some((event) => event.event === 'put'))
    expect(stream.events.map((event) => event.event)).toEqual(['held', 'queued', 'freed', 'held', 'freed', 'put'])
    expect(stream.events[0]?.data).toMatchObject({
      hold: one.body.id,
      client: 'ann',
      locks: [{ name: 'account/1', token: one.body.token }],
    })
    expect(stream.events[4]?.data).toMatchObject({ reason: 'stolen', actor: 'bob', text: 'why' })
    expect(JSON.stringify(stream.events)).not.toContain(other.body.id)
    stream.close()
    await stream.done
  })

  it('resumes from a cursor or Last-Event-ID, without gaps or duplicates', async () => {
    const { url, post, get } = await serve()
    const { at } = (await get('/v1/locks')).body
    for (const name of ['a', 'b', 'c']) await post('/v1/acquire', { name })
    const first = await watch(`${url}/v1/watch?from=${at}`)
    await until(() => first.events.filter((event) => event.event === 'held').length === 3)
    first.close()
    const last = first.events.at(-1)?.id as string
    for (const name of ['d', 'e']) await post('/v1/acquire', { name })
    const second = await watch(`${url}/v1/watch`, { 'last-event-id': last })
    await until(() => second.events.filter((event) => event.event === 'held').length === 2)
    const names = [...first.events, ...second.events]
      .filter((one) => one.event === 'held')
      .map((one) => one.data.locks[0].name)
    expect(names).toEqual(['a', 'b', 'c', 'd', 'e'])
    second.close()
  })

  it('reports missed events by gap or epoch-changed, and continues with new ones', async () => {
    const { url, post, get, member } = await serve()
    const { at } = (await get('/v1/locks')).body
    await post('/v1/acquire', { name: 'a' })
    member.forgetHistory()
    const late = await watch(`${url}/v1/watch?from=${at}`)
    const old = await watch(`${url}/v1/watch?from=7.1.1`)
    await until(() => late.events.length === 1 && old.events.length === 1)
    expect(late.events[0]).toMatchObject({ event: 'gap', data: { code: 'gap', status: 410 } })
    expect(old.events[0]).toMatchObject({ event: 'epoch-changed', data: { code: 'epoch-changed' } })
    expect(parseCursor(late.events[0]?.id as string).epoch).toBe(1)
    await post('/v1/acquire', { name: 'b' })
    await until(
      () => late.events.some((event) => event.event === 'held') && old.events.some((event) => event.event === 'held'),
    )
    late.close()
    old.close()
  })

  it('is closed if its client does not read, and buffers a bounded amount', async () => {
    const { server, member, url, post } = await serve()
    const others = member.listeners
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /v1/watch HTTP/1.1\r\nhost: localhost\r\n\r\n')
    socket.pause()
    await until(() => member.listeners > others)
    const { id } = (await post('/v1/sessions', { ttl: '1m' })).body
    const session = Number(BigInt(id) & (2n ** 48n - 1n)) as SessionId
    const locks = Array.from({ length: 64 }, (_, i) => ({
      name: `${i}/${'x'.repeat(500)}`,
      mode: 'exclusive' as const,
    }))
    const options = {
      locks,
      waitMs: 0,
      lockDelayMs: 0 as Millis,
      persistent: false,
      portable: false,
      data: new Uint8Array(0),
    }
    let request = 0
    await until(async () => {
      const ack = { lowest: ++request, also: [] }
      const got = await submit(member, { kind: 'acquire', session, request, ack, ...options })
      if (got.kind === 'granted') await submit(member, { kind: 'release', session, hold: got.grant.hold })
      return member.listeners <= others
    })
    socket.destroy()
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  })
})

it('cursors round-trip', () => {
  const cursor = { epoch: 3, index: 12 as never, ordinal: 4 }
  expect(parseCursor(formatCursor(cursor))).toEqual(cursor)
  for (const text of ['', '1.2', '1.2.3.4', '-1.2.3', '99999.1.1', '1.2.x', '1..3'])
    expect(() => parseCursor(text)).toThrow(/cursor/)
})
