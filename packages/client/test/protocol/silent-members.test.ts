import { expect, it } from 'vitest'
import type { Connector } from '../../src/protocol/channel.js'
import { ProtocolEngine } from '../../src/protocol/engine.js'

it('two members that are silent do not use up the time in which the third could be found', async () => {
  const tried: string[] = []
  const connector: Connector = {
    connect(url, events) {
      tried.push(url)
      if (url === 'http://c.invalid') setImmediate(() => events.opened())
      return {
        buffered: 0,
        close() {},
        send() {
          const welcome = { version: 1, cluster: 'c', epoch: 1, member: 'c', leaderUrl: '', urls: [] } as const
          setImmediate(() => events.received([{ kind: 'welcome', ...welcome }]))
        },
      }
    },
  }
  const urls = ['http://a.invalid', 'http://b.invalid', 'http://c.invalid']
  const engine = new ProtocolEngine({ urls, connector })
  const start = performance.now()
  await engine.connect(10_000)
  expect(tried).toEqual(urls)
  // With the two seconds that an attempt may take at most it would be more than four.
  expect(performance.now() - start).toBeLessThan(3_500)
  await engine.close()
})
