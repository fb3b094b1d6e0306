import { defaultPlatform } from '@leasehold/client'
import { expect, it } from 'vitest'
import { CallError, CODE, type StreamEvents } from '../../../src/etcd/api/grpc.js'
import { WatchStream } from '../../../src/etcd/api/watch-stream.js'

interface Opened {
  readonly events: StreamEvents
  readonly sent: Buffer[]
  isOver: boolean
}

/** Streams without a server, and pauses that the test ends. */
function stage() {
  const opened: Opened[] = []
  const pauses: (() => void)[] = []
  const failures: Error[] = []
  const stream = new WatchStream({
    platform: { ...defaultPlatform, after: (_, callback) => (pauses.push(callback), () => {}) },
    open: (events) => {
      const one: Opened = { events, sent: [], isOver: false }
      opened.push(one)
      return Promise.resolve({ send: (body) => void one.sent.push(body), cancel: () => (one.isOver = true) })
    },
    failed: (error) => failures.push(error),
  })
  const end = (one: Opened | undefined) => {
    if (one === undefined) throw new Error('there is no such stream')
    one.isOver = true
    one.events.ended(new CallError(CODE.unavailable, 'broken', true, undefined))
  }
  const live = () => opened.filter(({ isOver }) => !isOver)
  return { stream, opened, pauses, failures, end, live }
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
const target = { key: Buffer.from('a'), from: 1 }
const listener = { events: () => {}, gap: () => {} }

it('is one at a time, also for watches that are added while it is broken', async () => {
  const { stream, opened, pauses, end, live } = stage()
  stream.add(target, listener)
  await settle()
  end(opened[0])
  stream.add(target, listener)
  await settle()
  expect(live()).toHaveLength(0)
  for (const go of pauses.splice(0)) go()
  await settle()
  expect(live().map(({ sent }) => sent.length)).toEqual([2])
  stream.add(target, listener)
  await settle()
  expect(live().map(({ sent }) => sent.length)).toEqual([3])
  expect(pauses).toEqual([])
})

it('is not used when it has ended before its first use', async () => {
  const { stream, opened, pauses, failures, end, live } = stage()
  stream.add(target, listener)
  end(opened[0])
  await settle()
  expect([opened[0]?.sent.length, failures.length]).toEqual([0, 1])
  for (const go of pauses.splice(0)) go()
  await settle()
  expect(live().map(({ sent }) => sent.length)).toEqual([1])
})
