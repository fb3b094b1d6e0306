import { expect, it } from 'vitest'
import { BUFFER_MAX, EventBuffer } from '../../src/etcd/events.js'

it('a watch of etcd that fell behind yields nothing that came after the lost event', async () => {
  const buffer = new EventBuffer('', { epoch: 1, index: 0 as never, ordinal: 0 })
  const add = (index: number): void => buffer.add([{ kind: 'deleted', key: 'a', version: 1n }], index)
  for (let index = 1; index <= BUFFER_MAX + 1; index++) add(index)
  const items = buffer.items()
  let last = (await items.next()).value
  // The reader has emptied the buffer, so there is room again.
  add(BUFFER_MAX + 2)
  const rest = (async () => {
    for await (const item of items) last = item
  })()
  await expect(rest).rejects.toThrow('the watch fell behind')
  expect(last?.cursor.index).toBe(BUFFER_MAX)
})
