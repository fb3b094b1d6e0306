import { describe, expect, it } from 'vitest'
import { METHODS } from '../../../src/etcd/api/messages.js'
import { decode, encode, type Schema } from '../../../src/etcd/api/protobuf.js'

const inner: Schema = { text: [1, 'text'], many: [2, ['int']] }
const schema: Schema = {
  number: [1, 'int'],
  id: [2, 'big'],
  flag: [3, 'bool'],
  body: [4, 'bytes'],
  one: [5, inner],
  all: [6, [inner]],
  far: [64, 'int'],
}

describe('the wire format', () => {
  it('is that of protocol buffers: examples of its specification', () => {
    expect(encode({ a: [1, 'int'] }, { a: 150 })).toEqual(Buffer.from('089601', 'hex'))
    expect(encode({ b: [2, 'text'] }, { b: 'testing' })).toEqual(Buffer.from('120774657374696e67', 'hex'))
    expect(encode({ c: [3, { a: [1, 'int'] }] }, { c: { a: 150 } })).toEqual(Buffer.from('1a03089601', 'hex'))
  })

  it('decodes what it encodes, with long nested messages and 64-bit ids', () => {
    const message = {
      number: 2 ** 40 + 5,
      id: -7_000_000_000_000_000_001n,
      flag: true,
      body: Buffer.alloc(5_000, 7),
      one: { text: 'ä'.repeat(100), many: [1, 2 ** 35] },
      all: [
        { text: '', many: [] },
        { text: 'x'.repeat(20_000), many: [0] },
      ],
      far: 1,
    }
    expect(decode(schema, encode(schema, message))).toEqual(message)
  })

  it('has a value for every omitted field, and skips unknown fields', () => {
    const bytes = encode({ ...schema, more: [9, 'text'], id9: [10, 'big'] }, { more: 'x', id9: 5n })
    expect(decode(schema, bytes)).toEqual({ number: 0, id: 0n, flag: false, body: Buffer.alloc(0), all: [], far: 0 })
  })

  it('rejects truncated messages', () => {
    const bytes = encode(schema, { body: Buffer.alloc(100) })
    expect(() => decode(schema, bytes.subarray(0, 50))).toThrow(expect.objectContaining({ code: 'unreachable' }))
  })

  it('has transactions within transactions', () => {
    const { request } = METHODS.txn
    const txn = { compare: [], success: [], failure: [] }
    const message = { ...txn, success: [{ txn: { ...txn, failure: [{ txn }] } }] }
    expect(decode(request, encode(request, message))).toEqual(message)
  })
})
