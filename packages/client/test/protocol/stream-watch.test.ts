import type { Event, EventsMessage, Index } from '@leasehold/core'
import { expect, it } from 'vitest'
import { StreamWatch } from '../../src/protocol/stream-watch.js'

const put = (version: bigint): Event => ({ kind: 'put', key: 'a', version })
const message = (index: number, ...ordinals: number[]): EventsMessage => ({
  kind: 'events',
  correlation: 1,
  index: index as Index,
  items: ordinals.map((ordinal) => ({ ordinal, event: put(BigInt(100 * index + ordinal)) })),
})

it('a watch yields every event once, in order, whatever the service repeats', async () => {
  const watch = new StreamWatch('', { epoch: 1, index: 4 as Index, ordinal: 0 })
  for (const events of [message(5, 1, 2), message(5, 2, 3), message(4, 1), message(5, 1, 2, 3), message(7, 1)]) {
    watch.received(events)
  }
  const seen: string[] = []
  for await (const { cursor } of watch.items()) {
    seen.push(`${cursor.index}.${cursor.ordinal}`)
    if (cursor.index === 7) watch.stop()
  }
  expect(seen).toEqual(['5.1', '5.2', '5.3', '7.1'])
})
