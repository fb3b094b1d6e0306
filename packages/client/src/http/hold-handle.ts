import { InvalidError, splitToken } from '@leasehold/core'
import { base64Of } from '../json.js'

/*
 * The texts by which the service's HTTP interface names a hold and proves the right to it: flags, epoch, id, then the
 * session with its secret, then the hold's own secret, in base64url.
 */

const PREFIX = 'lhh_'
const HAS_SESSION = 1
const HAS_SECRET = 4
const HEAD_BYTES = 9
const SECRET_BYTES = 16
const SERIAL_BYTES = 6

/** The handle of a hold by its own secret alone: to adopt it, or to release it without its session. */
export function holdHandle(id: bigint, secret: string): string {
  const { epoch, serial } = splitToken(id)
  const bytes = new Uint8Array(HEAD_BYTES + SECRET_BYTES)
  const view = new DataView(bytes.buffer)
  bytes[0] = HAS_SECRET
  view.setUint16(1, epoch)
  view.setUint16(3, Math.floor(serial / 2 ** 32))
  view.setUint32(5, serial % 2 ** 32)
  for (let i = 0; i < SECRET_BYTES; i++) bytes[HEAD_BYTES + i] = Number.parseInt(secret.slice(2 * i, 2 * i + 2), 16)
  return PREFIX + base64url(bytes)
}

/** The hold's own secret in a handle, if it has one. @throws InvalidError */
export function secretOf(handle: string): string | undefined {
  const bytes = fromBase64url(handle.slice(PREFIX.length))
  const flags = bytes[0] ?? 0
  if ((flags & HAS_SECRET) === 0) return undefined
  const length = HEAD_BYTES + ((flags & HAS_SESSION) === 0 ? 0 : SERIAL_BYTES + SECRET_BYTES) + SECRET_BYTES
  if (!handle.startsWith(PREFIX) || bytes.length !== length)
    throw new InvalidError('the service sent an invalid hold handle')
  return Array.from(bytes.subarray(-SECRET_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0))
}

function base64url(bytes: Uint8Array): string {
  return base64Of(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function fromBase64url(text: string): Uint8Array {
  return fromBase64(text.replaceAll('-', '+').replaceAll('_', '/'))
}
