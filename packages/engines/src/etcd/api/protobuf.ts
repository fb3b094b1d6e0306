import { UnavailableError } from '@leasehold/core'

/**
 * The encoding of etcd's messages (protocol buffers, version 3): each field by its number. `int` is a number up to 2^53,
 * `big` a 64-bit id. A list in brackets is a repeated field.
 */
export type Kind = 'int' | 'big' | 'bool' | 'bytes' | 'text' | Schema
export interface Schema {
  readonly [field: string]: readonly [number, Kind | readonly [Kind]]
}

const VARINT = 0
const FIXED64 = 1
const LENGTH = 2
const FIXED32 = 5
const EMPTY = Buffer.alloc(0)

/** Fields that are undefined are left out. */
export function encode(schema: Schema, message: object): Buffer {
  const writer = new Writer()
  writer.message(schema, message)
  return writer.done()
}

const BUFFER_BYTES = 1024

class Writer {
  #bytes = Buffer.allocUnsafe(BUFFER_BYTES)
  #at = 0

  message(schema: Schema, message: object): void {
    for (const [field, value] of Object.entries(message)) {
      if (value === undefined) continue
      const place = schema[field]
      if (place === undefined) throw new TypeError(`no field ${field}`)
      const [number, kind] = place
      if (Array.isArray(kind)) for (const item of value as unknown[]) this.#field(number, kind[0], item)
      else this.#field(number, kind as Kind, value)
    }
  }

  done(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  #field(number: number, kind: Kind, value: unknown): void {
    if (kind === 'int' || kind === 'big' || kind === 'bool') {
      this.#varint(number * 8 + VARINT)
      if (typeof value === 'bigint') this.#bigint(value)
      else this.#varint(Number(value))
      return
    }
    this.#varint(number * 8 + LENGTH)
    if (kind === 'bytes') return this.#block(value as Uint8Array)
    if (kind === 'text') return this.#block(Buffer.from(value as string))
    this.#nested(kind, value as object)
  }

  /** Most lengths take one byte: for longer ones the content is moved. */
  #nested(schema: Schema, message: object): void {
    const start = this.#at
    this.#at++
    this.#room(0)
    this.message(schema, message)
    const length = this.#at - start - 1
    const size = varintBytes(length)
    this.#room(size)
    if (size > 1) this.#bytes.copyWithin(start + size, start + 1, this.#at)
    this.#at = start
    this.#varint(length)
    this.#at += length
  }

  #block(block: Uint8Array): void {
    this.#varint(block.length)
    this.#room(block.length)
    this.#bytes.set(block, this.#at)
    this.#at += block.length
  }

  #varint(value: number): void {
    this.#room(VARINT_BYTES_MAX)
    let rest = value
    while (rest > 127) {
      this.#bytes[this.#at++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.#bytes[this.#at++] = rest
  }

  #bigint(value: bigint): void {
    this.#room(VARINT_BYTES_MAX)
    let rest = BigInt.asUintN(64, value)
    while (rest > 127n) {
      this.#bytes[this.#at++] = Number(rest & 127n) | 128
      rest >>= 7n
    }
    this.#bytes[this.#at++] = Number(rest)
  }

  #room(size: number): void {
    if (this.#at + size <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + size))
    this.#bytes.copy(grown, 0, 0, this.#bytes.length)
    this.#bytes = grown
  }
}

const VARINT_BYTES_MAX = 10

function varintBytes(value: number): number {
  let size = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) size++
  return size
}

/**
 * Every field of the schema that is not repeated or a message has a value: 0, 0n, false, no bytes or no text where the
 * sender has omitted it. Unknown fields are skipped.
 */
export function decode<T>(schema: Schema, bytes: Buffer): T {
  return new Reader(bytes).message(schema) as T
}

class Reader {
  #at = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  message(schema: Schema): Record<string, unknown> {
    const { names, blank } = planOf(schema)
    const message: Record<string, unknown> = { ...blank }
    for (const [field, [, kind]] of Object.entries(schema)) if (Array.isArray(kind)) message[field] = []
    while (this.#at < this.#bytes.length) {
      const tag = this.#int()
      const field = names.get(tag >>> 3)
      if (field === undefined) {
        this.#skip(tag & 7)
        continue
      }
      const kind = (schema[field] as readonly [number, Kind | readonly [Kind]])[1]
      if (Array.isArray(kind)) (message[field] as unknown[]).push(this.#value(kind[0]))
      else message[field] = this.#value(kind as Kind)
    }
    return message
  }

  #value(kind: Kind): unknown {
    switch (kind) {
      case 'int':
        return this.#int()
      case 'big':
        return this.#big()
      case 'bool':
        return this.#int() !== 0
      case 'bytes':
        return this.#block()
      case 'text':
        return this.#block().toString('utf8')
      default:
        return new Reader(this.#block()).message(kind)
    }
  }

  #block(): Buffer {
    const length = this.#int()
    if (this.#at + length > this.#bytes.length) throw malformed()
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  #int(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#byte()
      value += (byte & 127) * factor
      if (byte < 128) break
    }
    return value
  }

  #big(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 127) << shift
      if (byte < 128) break
    }
    return BigInt.asIntN(64, value)
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw malformed()
    return byte
  }

  #skip(type: number): void {
    if (type === VARINT) this.#int()
    else if (type === LENGTH) this.#block()
    else if (type === FIXED64) this.#at += 8
    else if (type === FIXED32) this.#at += 4
    else throw malformed()
  }
}

interface Plan {
  readonly names: ReadonlyMap<number, string>
  readonly blank: Record<string, unknown>
}

const plans = new WeakMap<Schema, Plan>()

function planOf(schema: Schema): Plan {
  let plan = plans.get(schema)
  if (plan === undefined) {
    const names = new Map<number, string>()
    const blank: Record<string, unknown> = {}
    for (const [field, [number, kind]] of Object.entries(schema)) {
      names.set(number, field)
      if (kind === 'int') blank[field] = 0
      else if (kind === 'big') blank[field] = 0n
      else if (kind === 'bool') blank[field] = false
      else if (kind === 'bytes') blank[field] = EMPTY
      else if (kind === 'text') blank[field] = ''
    }
    plan = { names, blank }
    plans.set(schema, plan)
  }
  return plan
}

function malformed(): Error {
  return new UnavailableError('a message of etcd is malformed', { hint: 'is this the client port of an etcd?' })
}
