/** Whether `bytes[from, to)` are all zero. */
export function allZero(bytes: Uint8Array, from = 0, to = bytes.length): boolean {
  let i = from
  while (i < to && (bytes.byteOffset + i) % 4 !== 0) if (bytes[i++] !== 0) return false
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset + i, Math.max(0, to - i) >>> 2)
  for (let w = 0; w < words.length; w++) if (words[w] !== 0) return false
  for (i += words.length * 4; i < to; i++) if (bytes[i] !== 0) return false
  return true
}
