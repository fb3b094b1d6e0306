import { revokeKey } from '@leasehold/server'
import { describe, expect, test } from 'vitest'
import { type Harness, serve, until } from '../support/harness.js'
import { bearer, useKeyFile } from '../support/keys.js'
import { openStream } from '../support/raw-stream.js'

const keys = useKeyFile()

/** Acquires and releases a lock with a valid key. */
async function acquireAndRelease({ call }: Harness, good: string, name: string): Promise<void> {
  const { body } = await call('POST', '/v1/acquire', { name }, bearer(good))
  await call('POST', '/v1/release', { hold: body.hold }, bearer(good))
}

describe('a revoked key', () => {
  test('ends a watch of a stream with the error, without further events', async () => {
    const [mine, other] = [keys.create('billing:read'), keys.create('*:acquire,read')]
    const harness = await serve({ keys: keys.file })
    const { socket, received } = await openStream(harness.url, mine.text, {
      kind: 'watch',
      correlation: 5,
      prefix: 'billing',
    })
    await acquireAndRelease(harness, other.text, 'billing/1')
    await until(() => received.filter((one) => one.kind === 'events').length >= 2)
    revokeKey(keys.file, mine.entry.id)
    await until(
      async () => (await harness.call('GET', '/v1/locks?prefix=billing', undefined, bearer(mine.text))).status === 401,
    )
    const before = received.length
    await acquireAndRelease(harness, other.text, 'billing/2')
    await until(() => received.length > before)
    await acquireAndRelease(harness, other.text, 'billing/3')
    expect(received.slice(before)).toEqual([
      expect.objectContaining({
        kind: 'error',
        correlation: 5,
        refused: expect.objectContaining({ code: 'unauthenticated' }),
      }),
    ])
    socket.terminate()
  })

  test('ends an event stream with the error, without further events', async () => {
    const [mine, other] = [keys.create('billing:read'), keys.create('*:acquire,read')]
    const harness = await serve({ keys: keys.file })
    const answer = await fetch(`${harness.url}/v1/watch?prefix=billing`, { headers: bearer(mine.text) })
    revokeKey(keys.file, mine.entry.id)
    await until(
      async () => (await harness.call('GET', '/v1/locks?prefix=billing', undefined, bearer(mine.text))).status === 401,
    )
    await acquireAndRelease(harness, other.text, 'billing/2')
    const text = await answer.text()
    expect(text).toContain('event: unauthenticated')
    expect(text).not.toContain('billing/2')
  })

  test('rejects a waiting acquire over HTTP, and closes its session', async () => {
    const [mine, other] = [keys.create('billing:acquire'), keys.create('*:acquire,read')]
    const harness = await serve({ keys: keys.file })
    const { body } = await harness.call('POST', '/v1/acquire', { name: 'billing/1' }, bearer(other.text))
    const waiting = harness.call(
      'POST',
      '/v1/acquire',
      { name: 'billing/1', wait: '30s', ttl: '5s' },
      bearer(mine.text),
    )
    await until(() => [...harness.member.state.machine.waiters.values()].length === 1)
    revokeKey(keys.file, mine.entry.id)
    expect(await waiting).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    await until(() => harness.member.state.machine.sessions.size === 1)
    await harness.call('POST', '/v1/release', { hold: body.hold }, bearer(other.text))
    expect([...harness.member.state.machine.holds.values()]).toEqual([])
  })
})
