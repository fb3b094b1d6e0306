import type { Event, EventsMessage, Index } from '@leasehold/core'
import { expect, it } from 'vitest'
import { StreamWatch, WATCH_BUFFER_MAX } from '../../src/protocol/stream-watch.js'

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

it('a watch that fell behind yields nothing that came after the lost event', async () => {
  const watch = new StreamWatch('', { epoch: 1, index: 0 as Index, ordinal: 0 })
  for (let index = 1; index <= WATCH_BUFFER_MAX + 1; index++) watch.received(message(index, 1))
  const items = watch.items()
  let last = (await items.next()).value
  // The reader has emptied the buffer, so there is room again.
  watch.received(message(WATCH_BUFFER_MAX + 2, 1))
  const rest = (async () => {
    for await (const item of items) last = item
  })()
  await expect(rest).rejects.toThrow('the watch fell behind')
  expect(last?.cursor.index).toBe(WATCH_BUFFER_MAX)
})
