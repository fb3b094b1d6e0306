import { crc32, Reader, Writer } from '@leasehold/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  CHUNK_BYTES,
  CHUNKS_AHEAD_MAX,
  type ReceivedSnapshot,
  SnapshotReceiver,
  SnapshotSender,
} from '../../src/snapshots/snapshot-transfer.js'
import {
  type Chunk,
  type ChunkAck,
  readChunk,
  readChunkAck,
  writeChunk,
  writeChunkAck,
} from '../../src/wire/snapshot-chunks.js'
import { seeded } from '../support/sim-disk.js'

function content(index: number, bytes: number) {
  const state = stateOf(index, bytes)
  const pieces: Uint8Array[] = []
  // Pieces of any size: they need not be those that are sent.
  for (let at = 0, size = 1000; at < bytes; at += size, size = 1 + ((size * 7) % 150_000)) {
    pieces.push(state.subarray(at, at + size))
  }
  return {
    index,
    term: 3,
    meta: new Uint8Array([1, 2, 3, index]),
    state: { pieces, bytes, checksum: crc32(state) },
  }
}

function stateOf(index: number, bytes: number): Uint8Array {
  const choose = seeded(index)
  return Uint8Array.from({ length: bytes }, () => choose(256))
}

function overWire(chunk: Chunk): Chunk {
  const writer = new Writer()
  writeChunk(writer, chunk)
  return readChunk(new Reader(writer.take()))
}

/** A link that loses, duplicates and reorders in both directions. Returns what arrived, and the sender's outcome. */
function transfer(seed: number, bytes: number, lossPercent: number) {
  const choose = seeded(seed)
  const receiver = new SnapshotReceiver()
  const chunks: Chunk[] = []
  const acks: ChunkAck[] = []
  const received: ReceivedSnapshot[] = []
  let outcome: 'done' | 'failed' | undefined
  let underWayMax = 0
  const sender = new SnapshotSender(2, 77, 5, content(9, bytes), (chunk) => chunks.push(chunk))
  for (let step = 0; step < 20_000 && !outcome; step++) {
    underWayMax = Math.max(underWayMax, chunks.length)
    if (chunks.length > 0 && choose(3) > 0) {
      const at = choose(4) === 0 ? choose(chunks.length) : 0
      const [chunk] = choose(10) === 0 ? [chunks[at] as Chunk] : chunks.splice(at, 1)
      if (choose(100) < lossPercent) continue
      const { ack, received: whole } = receiver.receive(1, overWire(chunk as Chunk), false)
      if (whole) {
        received.push(whole)
        acks.push(receiver.finish(whole.transfer, 'done'))
      } else if (ack) acks.push(ack)
    } else if (acks.length > 0) {
      const ack = acks.shift() as ChunkAck
      if (choose(100) >= lossPercent) outcome = sender.acknowledge(ack)
    } else outcome = sender.tick()
  }
  return { outcome, received, underWayMax }
}

describe('transfer of a snapshot', () => {
  it('delivers every byte once, despite lost, duplicated and reordered frames', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 0, max: 3 * CHUNK_BYTES }),
        fc.integer({ min: 0, max: 30 }),
        (seed, bytes, loss) => {
          const { outcome, received } = transfer(seed, bytes, loss)
          expect(outcome).toBe('done')
          expect(received).toHaveLength(1)
          const { state, meta, ...rest } = received[0] as ReceivedSnapshot
          const checksum = crc32(state)
          expect(rest).toEqual({ from: 1, transfer: 77, leaderTerm: 5, index: 9, term: 3, checksum })
          expect([...meta]).toEqual([1, 2, 3, 9])
          expect(Buffer.compare(state, stateOf(9, bytes))).toBe(0)
        },
      ),
      { numRuns: 15 },
    )
  })

  it('fails without acknowledgements, and sends only a bounded window', () => {
    const sent: Chunk[] = []
    const sender = new SnapshotSender(2, 1, 1, content(1, 20 * CHUNK_BYTES), (chunk) => sent.push(chunk))
    expect(sent).toHaveLength(CHUNKS_AHEAD_MAX)
    let outcome: string | undefined
    for (let tick = 0; tick < 1000 && !outcome; tick++) outcome = sender.tick()
    expect(outcome).toBe('failed')
    expect(sent.length).toBeLessThan(100)
  })

  it('never mixes two of them', () => {
    const receiver = new SnapshotReceiver()
    const first: Chunk[] = []
    const second: Chunk[] = []
    new SnapshotSender(2, 1, 5, content(1, 2 * CHUNK_BYTES), (chunk) => first.push(chunk))
    new SnapshotSender(2, 2, 6, content(2, 2 * CHUNK_BYTES), (chunk) => second.push(chunk))
    receiver.receive(1, first[0] as Chunk, false)
    expect(receiver.receive(3, second[1] as Chunk, false).ack).toBeUndefined()
    receiver.receive(3, second[0] as Chunk, false)
    expect(receiver.receive(1, first[1] as Chunk, false)).toEqual({ ack: undefined })
    // The older leader's transfer does not replace the newer one.
    expect(receiver.receive(1, first[0] as Chunk, false)).toEqual({ ack: undefined })
    receiver.receive(3, second[1] as Chunk, false)
    expect(receiver.receive(3, second[2] as Chunk, false).received?.index).toBe(2)
  })

  it('is not cancelled by a late one from an earlier leader', () => {
    const receiver = new SnapshotReceiver()
    const first = (transfer: number, leaderTerm: number): Chunk => ({
      ...{ transfer, leaderTerm, index: 9, term: 3, metaBytes: 0, checksum: 0 },
      ...{ total: 1000, offset: 0, data: new Uint8Array(400) },
    })
    expect(receiver.receive(3, first(8, 5), false).ack).toEqual({ transfer: 8, offset: 400, result: 'more' })
    expect(receiver.receive(2, first(7, 4), false)).toEqual({ ack: undefined })
    expect(receiver.receive(3, first(8, 5), false).ack).toEqual({ transfer: 8, offset: 400, result: 'more' })
    expect(receiver.receive(2, first(9, 5), false).ack).toEqual({ transfer: 9, offset: 400, result: 'more' })
  })

  it('is not ended by an answer to another one', () => {
    const sender = new SnapshotSender(2, 77, 5, content(9, 1000), () => {})
    for (const result of ['done', 'failed'] as const) {
      expect(sender.acknowledge({ transfer: 76, offset: 0, result })).toBeUndefined()
      expect(sender.acknowledge({ transfer: 77, offset: 0, result })).toBe(result)
    }
  })

  it('is rejected completely when its checksum is wrong', () => {
    const receiver = new SnapshotReceiver()
    const chunks: Chunk[] = []
    new SnapshotSender(2, 1, 5, content(1, 10), (chunk) => chunks.push(chunk))
    expect(receiver.receive(1, { ...(chunks[0] as Chunk), checksum: 1 }, false).ack).toMatchObject({ result: 'failed' })
  })

  it('acknowledges with messages that decode unchanged', () => {
    const writer = new Writer()
    writeChunkAck(writer, { transfer: 9, offset: 12345, result: 'done' })
    expect(readChunkAck(new Reader(writer.take()))).toEqual({ transfer: 9, offset: 12345, result: 'done' })
  })
})
