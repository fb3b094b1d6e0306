import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeClientMessages,
  decodeCommand,
  decodeEntry,
  decodeServerMessages,
  encodeClientMessages,
  encodeCommand,
  encodeEntry,
  encodeServerMessages,
  Reader,
  Writer,
} from '../../src/index.js'
import { clientMessage, command, entry, serverMessage } from '../arbitraries.js'
import { CODECS, decode, encode } from './codecs.js'

describe('what is written is read again', () => {
  it.each(CODECS)('$name', (codec) => {
    fc.assert(
      fc.property(codec.values, (value) => {
        // Strict: a field that was absent is absent again, and not there as undefined.
        expect(decode(codec, encode(codec, value))).toStrictEqual(value)
      }),
      { numRuns: 300 },
    )
  })

  it('takes fields that are there as undefined for absent', () => {
    const bytes = encodeCommand({
      kind: 'release',
      hold: 1 as never,
      session: undefined,
      request: undefined,
      ack: undefined,
      secret: undefined,
    })
    expect(decodeCommand(bytes)).toStrictEqual({ kind: 'release', hold: 1 })
  })

  it('does not depend on where the bytes lie', () => {
    fc.assert(
      fc.property(serverMessage, fc.nat({ max: 9 }), (message, shift) => {
        const bytes = encodeServerMessages([message])
        const room = Buffer.alloc(bytes.length + shift + 5, 0xff)
        room.set(bytes, shift)
        expect(decodeServerMessages(room.subarray(shift, shift + bytes.length))).toStrictEqual([message])
        const reader = new Reader(room, shift, shift + bytes.length)
        expect(
          decode({ read: () => decodeServerMessages(reader.raw(reader.remaining)) }, new Uint8Array(0)),
        ).toStrictEqual([message])
      }),
    )
  })

  it('keeps what was decoded when the input is used again', () => {
    fc.assert(
      fc.property(command, (value) => {
        const bytes = Buffer.from(encodeCommand(value))
        const decoded = decodeCommand(bytes)
        bytes.fill(0xaa)
        expect(decoded).toStrictEqual(value)
      }),
    )
  })
})

describe('whole inputs', () => {
  it('entries and commands', () => {
    fc.assert(
      fc.property(entry, (value) => {
        expect(decodeEntry(encodeEntry(value))).toStrictEqual(value)
      }),
    )
    fc.assert(
      fc.property(command, (value) => {
        expect(decodeCommand(encodeCommand(value))).toStrictEqual(value)
      }),
    )
  })

  it('any number of messages in a frame', () => {
    fc.assert(
      fc.property(fc.array(clientMessage, { maxLength: 8 }), (messages) => {
        expect(decodeClientMessages(encodeClientMessages(messages))).toStrictEqual(messages)
      }),
    )
    fc.assert(
      fc.property(fc.array(serverMessage, { maxLength: 8 }), (messages) => {
        expect(decodeServerMessages(encodeServerMessages(messages))).toStrictEqual(messages)
      }),
    )
    expect(decodeClientMessages(new Uint8Array(0))).toEqual([])
  })

  it('a frame is its messages one after another', () => {
    fc.assert(
      fc.property(fc.array(serverMessage, { maxLength: 5 }), (messages) => {
        const apart = messages.map((message) => encodeServerMessages([message]))
        expect(encodeServerMessages(messages)).toEqual(new Uint8Array(Buffer.concat(apart)))
      }),
    )
  })

  it('encodes the same into a writer that was used before', () => {
    const writer = new Writer(1)
    fc.assert(
      fc.property(entry, (value) => {
        writer.reset()
        const codec = CODECS[0] as (typeof CODECS)[number]
        codec.write(writer, value)
        expect(writer.take()).toEqual(encodeEntry(value))
      }),
    )
  })
})
