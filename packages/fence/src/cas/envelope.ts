import { InvalidError, padToken, parseToken } from '@leasehold/core'

/**
 * What a guarded object holds: the value, and in the same bytes the mark. `kind` and `lock` say whose tokens are compared.
 * `write` names the write that put the value there. Every change raises the mark or has a new `write`: no two states of an
 * object have the same bytes, so a version that is made from the bytes (an ETag) never comes back.
 */
export interface Envelope {
  /** 0 on the bare resource of permits, which only keeps the kind. */
  readonly mark: bigint
  readonly kind: 'lock' | 'slot' | 'permits'
  readonly lock: string
  readonly write: string
  /** Null: there is no value (it was deleted, or the object only carries a mark). */
  readonly value: Uint8Array | null
}

const MAGIC = 'leasehold-envelope/1 '
/** Longest first line: two names, percent-free JSON escapes included. */
const HEAD_BYTES_MAX = 16_384
const NEWLINE = 10
const NO_MARK = '0'.repeat(19)

/** One line of JSON, then the bytes of the value as they are. */
export function encodeEnvelope(envelope: Envelope): Uint8Array {
  const { mark, kind, lock, write, value } = envelope
  const head = { mark: mark === 0n ? NO_MARK : padToken(mark), kind, lock, write, deleted: value === null }
  const line = new TextEncoder().encode(`${MAGIC}${JSON.stringify(head)}\n`)
  const bytes = new Uint8Array(line.length + (value?.length ?? 0))
  bytes.set(line)
  if (value !== null) bytes.set(value, line.length)
  return bytes
}

/** Whether bytes begin as an envelope does. */
export function isEnvelope(bytes: Uint8Array): boolean {
  for (let i = 0; i < MAGIC.length; i++) if (bytes[i] !== MAGIC.charCodeAt(i)) return false
  return true
}

/**
 * Reads an object that a guard has written: for readers without a lock, in whatever program.
 * @throws InvalidError (`mismatch`) for bytes that were written around the guard
 */
export function decodeEnvelope(bytes: Uint8Array): Envelope {
  if (!isEnvelope(bytes)) throw foreign('it has no envelope')
  const end = bytes.subarray(0, HEAD_BYTES_MAX).indexOf(NEWLINE)
  if (end === -1) throw foreign('its envelope has no end')
  let head: Record<string, unknown>
  try {
    head = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(MAGIC.length, end)))
  } catch {
    throw foreign('its envelope cannot be read')
  }
  const { mark, kind, lock, write, deleted } = head
  const texts = [mark, lock, write].every((text) => typeof text === 'string')
  if (!texts || (kind !== 'lock' && kind !== 'slot' && kind !== 'permits'))
    throw foreign('its envelope is not complete')
  return {
    mark: mark === NO_MARK ? 0n : parseToken(mark as string),
    kind,
    lock: lock as string,
    write: write as string,
    value: deleted === true ? null : bytes.subarray(end + 1),
  }
}

function foreign(why: string): InvalidError {
  return new InvalidError(`the object was not written by a guard: ${why}`, {
    code: 'mismatch',
    hint: 'with { adoptPlain: true } the guard takes such an object over at its first opening',
  })
}
