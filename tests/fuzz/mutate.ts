import type { SeededRandom } from '../chaos/random.js'

const INTERESTING = [0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x40, 0x3f]
const EDITS_MAX = 6
const GROWTH_MAX = 64

/** A valid input with a few edits: bits, bytes, cuts, copies, pieces of another valid one, numbers at the edge. */
export function mutate(random: SeededRandom, corpus: readonly Uint8Array[]): Uint8Array {
  let bytes = Uint8Array.from(random.pick(corpus))
  const edits = random.between(0, EDITS_MAX)
  for (let i = 0; i < edits; i++) bytes = edit(random, bytes, corpus)
  return bytes
}

function edit(random: SeededRandom, bytes: Uint8Array, corpus: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  if (bytes.length === 0) return Uint8Array.from([random.between(0, 255)])
  const at = random.between(0, bytes.length - 1)
  const copy = Uint8Array.from(bytes)
  switch (random.between(0, 6)) {
    case 0:
      copy[at] = (copy[at] as number) ^ (1 << random.between(0, 7))
      return copy
    case 1:
      copy[at] = random.pick(INTERESTING)
      return copy
    case 2:
      return copy.slice(0, at)
    case 3: {
      const length = random.between(1, GROWTH_MAX)
      return concat(copy.slice(0, at), copy.slice(at, at + length), copy.slice(at))
    }
    case 4: {
      const other = random.pick(corpus)
      const from = random.between(0, other.length)
      return concat(copy.slice(0, at), other.slice(from, from + random.between(0, GROWTH_MAX)), copy.slice(at))
    }
    case 5:
      return concat(copy.slice(0, at), copy.slice(at + random.between(1, 8)))
    default:
      // The largest numbers of a varint, where counts and lengths are.
      return concat(
        copy.slice(0, at),
        Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f),
        copy.slice(at + 1),
      )
  }
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}

const TEXTS = [
  '',
  'a',
  'billing/invoice-42',
  '10s',
  '30',
  'Infinity',
  '-1',
  '0',
  '1e9',
  '281474976710657',
  '\u0000',
  '😀',
  'x'.repeat(600),
]
const NUMBERS = [0, 1, -1, 0.5, 1e21, Number.MAX_SAFE_INTEGER, 2 ** 31, 65_536, 999]

/** Any JSON, near what requests look like: their own fields, and values of every kind. */
export function json(random: SeededRandom, fields: readonly string[], depth = 0): unknown {
  const kind = random.between(0, depth > 3 ? 4 : 7)
  if (kind === 0) return random.pick(NUMBERS)
  if (kind === 1) return random.chance(0.5)
  if (kind === 2) return null
  if (kind <= 4) return random.pick(TEXTS)
  if (kind === 5) return Array.from({ length: random.between(0, 4) }, () => json(random, fields, depth + 1))
  return object(random, fields, depth)
}

export function object(random: SeededRandom, fields: readonly string[], depth = 0): Record<string, unknown> {
  const names = Array.from({ length: random.between(0, 6) }, () => random.pick(fields))
  return Object.fromEntries(names.map((name) => [name, json(random, fields, depth + 1)]))
}
