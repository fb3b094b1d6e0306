import { InvalidError, padToken, parseToken } from '@leasehold/core'

/**
 * The content of a guarded object: the value and, in the same bytes, the mark. `kind` and `lock` name the lock whose tokens
 * are compared. `write` identifies the write that stored the value. Every change raises the mark or has a new `write`, so no
 * two states of an object have equal bytes, and a version that is derived from the bytes (an ETag) never repeats.
 */
export interface Envelope {
  /** 0 in the object of the bare resource of permits, which only stores the kind. */
  readonly mark: bigint
  readonly kind: 'lock' | 'slot' | 'permits'
  readonly lock: string
  readonly write: string
  /** Null if the value was deleted or the object only carries a mark. */
  readonly value: Uint8Array | null
}

const MAGIC = 'leasehold-envelope/1 '
/** Bound of the first line: two names with JSON escapes. */
const HEAD_BYTES_MAX = 16_384
const NEWLINE = 10
const NO_MARK = '0'.repeat(19)

/** Encodes one line of JSON, followed by the bytes of the value. */
export function encodeEnvelope(envelope: Envelope): Uint8Array {
  const { mark, kind, lock, write, value } = envelope
  const head = { mark: mark === 0n ? NO_MARK : padToken(mark), kind, lock, write, deleted: value === null }
  const line = new TextEncoder().encode(`${MAGIC}${JSON.stringify(head)}\n`)
  const bytes = new Uint8Array(line.length + (value?.length ?? 0))
  bytes.set(line)
  if (value !== null) bytes.set(value, line.length)
  return bytes
}

/** Whether bytes begin like an envelope. */
export function isEnvelope(bytes: Uint8Array): boolean {
  for (let i = 0; i < MAGIC.length; i++) if (bytes[i] !== MAGIC.charCodeAt(i)) return false
  return true
}

/**
 * Decodes an object that a guard has written; for readers without a lock, in any program.
 * @throws InvalidError (`mismatch`) for bytes that no guard has written
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
    hint: 'with { adoptPlain: true } the guard adopts such an object at its first opening',
  })
}
