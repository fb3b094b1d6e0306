/** The reflected polynomial of CRC-32 (IEEE 802.3, ISO-HDLC), as in zlib and PNG. */
const POLYNOMIAL = 0xedb88320
const TABLES = 8

/** `tables[k * 256 + b]`: what byte `b` contributes when `k` more bytes follow it in the same step. */
function makeTables(): Int32Array {
  const tables = new Int32Array(TABLES * 256)
  for (let byte = 0; byte < 256; byte++) {
    let value = byte
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1
    tables[byte] = value
  }
  for (let i = 256; i < tables.length; i++) {
    const before = tables[i - 256] as number
    tables[i] = (before >>> 8) ^ (tables[before & 0xff] as number)
  }
  return tables
}

const T = makeTables()

/**
 * Returns the CRC-32 of `bytes`, like `zlib.crc32`. `seed` is the checksum of the bytes before, so `crc32(b, crc32(a))` is the
 * checksum of `a` followed by `b`. `from` and `to` select a part of `bytes`. Takes eight bytes per step (slicing-by-8).
 */
export function crc32(bytes: Uint8Array, seed = 0, from = 0, to = bytes.length): number {
  let crc = ~seed
  let i = from
  for (const whole = to - 7; i < whole; i += 8) {
    const low =
      crc ^
      ((bytes[i] as number) |
        ((bytes[i + 1] as number) << 8) |
        ((bytes[i + 2] as number) << 16) |
        ((bytes[i + 3] as number) << 24))
    crc =
      (T[1792 + (low & 0xff)] as number) ^
      (T[1536 + ((low >>> 8) & 0xff)] as number) ^
      (T[1280 + ((low >>> 16) & 0xff)] as number) ^
      (T[1024 + (low >>> 24)] as number) ^
      (T[768 + (bytes[i + 4] as number)] as number) ^
      (T[512 + (bytes[i + 5] as number)] as number) ^
      (T[256 + (bytes[i + 6] as number)] as number) ^
      (T[bytes[i + 7] as number] as number)
  }
  for (; i < to; i++) crc = (crc >>> 8) ^ (T[(crc ^ (bytes[i] as number)) & 0xff] as number)
  return ~crc >>> 0
}

/**
 * Returns the checksum of two parts together, from the checksum of each and the length of the second in bytes: the first
 * checksum is extended by that many zero bytes, which is a multiplication modulo the polynomial.
 */
export function joinedCrc32(first: number, second: number, secondBytes: number): number {
  // x^(8 × secondBytes), by squaring; the highest bit is x^0.
  let power = 0x80000000 | 0
  let square = 0x00800000
  for (let rest = secondBytes; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power = multiplied(power, square)
    square = multiplied(square, square)
  }
  return (multiplied(power, first) ^ second) >>> 0
}

/** The product of two polynomials modulo that of the checksum. */
function multiplied(a: number, b: number): number {
  let product = 0
  let shifted = b
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= shifted
    shifted = shifted & 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1
  }
  return product
}
