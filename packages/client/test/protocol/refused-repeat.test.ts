import type { ClientMessage, Command, Refused, Result, ServerMessage } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import type { Channel, ChannelEvents, Connector } from '../../src/protocol/channel.js'
import { ProtocolEngine } from '../../src/protocol/protocol-engine.js'

/** A service that is written down: what it answers to each command. Undefined: it has no answer, and the connection breaks. */
class ScriptedService implements Connector {
  readonly seen: Command[] = []
  constructor(readonly answer: (command: Command, seen: readonly Command[]) => Result | undefined) {}

  connect(_: string, events: ChannelEvents): Channel {
    const say = (message: ServerMessage): void => setImmediate(() => events.received([message])) as unknown as void
    setImmediate(() => events.opened())
    return {
      buffered: 0,
      close() {},
      send: (messages) => {
        for (const message of messages) this.#take(message, say, events)
      },
    }
  }

  #take(message: ClientMessage, say: (message: ServerMessage) => void, events: ChannelEvents): void {
    if (message.kind === 'hello') {
      return say({
        kind: 'welcome',
        version: message.version,
        cluster: 'c',
        epoch: 1,
        member: 'n',
        leaderUrl: '',
        urls: [],
      })
    }
    if (message.kind === 'attach') return say({ kind: 'attached', correlation: message.correlation })
    if (message.kind !== 'command') return
    const { command, correlation } = message
    this.seen.push(command)
    const result = this.answer(command, this.seen)
    if (result) say({ kind: 'result', correlation, result })
    else setImmediate(() => events.closed(new Error('cut')))
  }
}

const OPENED: Result = { kind: 'opened', session: 1 as never, secret: '0'.repeat(32), ttlMs: 30_000 as never }
const full = (code: 'storage' | 'limit' | 'busy'): Refused => ({ kind: 'refused', code, message: `refused: ${code}` })
const count = (seen: readonly Command[], kind: Command['kind']): number =>
  seen.filter((one) => one.kind === kind).length

/** The first sending has no answer, and its repeat is refused. */
async function sessionOf(code: 'storage' | 'limit' | 'busy') {
  const service = new ScriptedService((command, seen) => {
    if (command.kind === 'openSession') return OPENED
    if (command.kind === 'cancel') return { kind: 'cancelled', was: 'granted' }
    return count(seen, command.kind) === 1 ? undefined : full(code)
  })
  const engine = new ProtocolEngine({ urls: ['http://service.invalid'], connector: service })
  return { service, session: await engine.openSession({ ttlMs: 30_000, client: '', timeoutMs: 5_000 }) }
}

const ACQUIRE = {
  locks: [{ name: 'a', mode: 'exclusive' }],
  waitMs: 10_000,
  lockDelayMs: 0,
  persistent: false,
  portable: false,
  data: new Uint8Array(0),
} as const

describe('a repeat that is refused', () => {
  it.each(['storage', 'limit'] as const)(
    'for want of room (%s): the acquire may have been granted, and is undone',
    async (code) => {
      const { service, session } = await sessionOf(code)
      await expect(session.acquire(ACQUIRE)).rejects.toMatchObject({ code })
      await expect.poll(() => service.seen.filter((one) => one.kind === 'cancel')).toMatchObject([{ target: 1 }])
      await expect.poll(() => (session as unknown as { openRequests: number }).openRequests).toBe(0)
    },
  )

  it('by the lock state reports the outcome', async () => {
    const { service, session } = await sessionOf('busy')
    await expect(session.acquire(ACQUIRE)).rejects.toMatchObject({ code: 'busy' })
    // A cancel would be sent some turns later.
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(count(service.seen, 'cancel')).toBe(0)
  })

  it('for want of room: a put may have been done', async () => {
    const { session } = await sessionOf('storage')
    const put = session.put({ key: 'k', value: new Uint8Array(1), timeoutMs: 10_000 })
    await expect(put).rejects.toMatchObject({ code: 'unknown-outcome', cause: { code: 'storage' } })
  })
})
