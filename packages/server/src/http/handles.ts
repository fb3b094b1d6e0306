import {
  COUNTER_MAX,
  EPOCH_MAX,
  EpochChangedError,
  type Hex128,
  type HoldId,
  InvalidError,
  type Serial,
  type SessionId,
} from '@leasehold/core'

/*
 * Handles replace the connection for HTTP clients: opaque text that names a session or a hold and proves the right to use
 * it. Possession of the text grants the right, so a handle must never be logged.
 */

const SESSION_PREFIX = 'lhs_'
const HOLD_PREFIX = 'lhh_'
const SECRET_BYTES = 16
const SERIAL_BYTES = 6

const HAS_SESSION = 1
const OWNS_SESSION = 2
const HAS_SECRET = 4

/** The right to use a session. */
export interface SessionHandle {
  readonly session: SessionId
  readonly secret: Hex128
}

/** The right to renew, release and use a hold: by the secret of its session, by its own secret, or by both. */
export interface HoldHandle {
  readonly hold: HoldId
  readonly session: SessionHandle | undefined
  /** Whether the session was opened for this hold alone, and is closed with its release. */
  readonly ownsSession: boolean
  /** The secret of a persistent or portable hold. */
  readonly secret: Hex128 | undefined
}

export function formatSessionHandle(epoch: number, handle: SessionHandle): string {
  const bytes = Buffer.concat([head(0, epoch, handle.session), Buffer.from(handle.secret, 'hex')])
  return SESSION_PREFIX + bytes.toString('base64url')
}

export function formatHoldHandle(epoch: number, handle: HoldHandle): string {
  const { session, secret } = handle
  const parts: Buffer[] = []
  let flags = 0
  if (session !== undefined) {
    flags |= handle.ownsSession ? HAS_SESSION | OWNS_SESSION : HAS_SESSION
    parts.push(serialBytes(session.session), Buffer.from(session.secret, 'hex'))
  }
  if (secret !== undefined) {
    flags |= HAS_SECRET
    parts.push(Buffer.from(secret, 'hex'))
  }
  return HOLD_PREFIX + Buffer.concat([head(flags, epoch, handle.hold), ...parts]).toString('base64url')
}

/**
 * Parses a session handle.
 * @throws InvalidError for a malformed handle, EpochChangedError for a handle of another epoch
 */
export function parseSessionHandle(text: string, epoch: number): SessionHandle {
  const bytes = decode(text, SESSION_PREFIX, 'session')
  if (bytes.length !== 9 + SECRET_BYTES || bytes[0] !== 0) throw malformed('session')
  checkEpoch(bytes, epoch, 'session')
  return { session: serial(bytes, 3, 'session'), secret: hex(bytes, 9) }
}

/**
 * Parses a hold handle.
 * @throws InvalidError for a malformed handle, EpochChangedError for a handle of another epoch
 */
export function parseHoldHandle(text: string, epoch: number): HoldHandle {
  const bytes = decode(text, HOLD_PREFIX, 'hold')
  const flags = bytes[0] as number
  const withSession = (flags & HAS_SESSION) !== 0
  const withSecret = (flags & HAS_SECRET) !== 0
  const length = 9 + (withSession ? SERIAL_BYTES + SECRET_BYTES : 0) + (withSecret ? SECRET_BYTES : 0)
  if (flags > 7 || bytes.length !== length || (!withSession && (flags & OWNS_SESSION) !== 0)) throw malformed('hold')
  checkEpoch(bytes, epoch, 'hold')
  const hold = serial(bytes, 3, 'hold')
  const session = withSession ? { session: serial(bytes, 9, 'hold'), secret: hex(bytes, 9 + SERIAL_BYTES) } : undefined
  const secret = withSecret ? hex(bytes, length - SECRET_BYTES) : undefined
  return { hold, session, ownsSession: (flags & OWNS_SESSION) !== 0, secret }
}

/** Whether the text looks like a handle, as opposed to a decimal id. */
export function isHandle(text: string): boolean {
  return text.startsWith(SESSION_PREFIX) || text.startsWith(HOLD_PREFIX)
}

function head(flags: number, epoch: number, id: Serial): Buffer {
  const bytes = Buffer.alloc(3)
  bytes.writeUInt8(flags, 0)
  bytes.writeUInt16BE(epoch, 1)
  return Buffer.concat([bytes, serialBytes(id)])
}

function serialBytes(id: Serial): Buffer {
  const bytes = Buffer.alloc(SERIAL_BYTES)
  bytes.writeUIntBE(id, 0, SERIAL_BYTES)
  return bytes
}

function decode(text: string, prefix: string, what: 'session' | 'hold'): Buffer {
  if (!text.startsWith(prefix)) throw malformed(what)
  const body = text.slice(prefix.length)
  const bytes = Buffer.from(body, 'base64url')
  if (bytes.length < 9 || bytes.toString('base64url') !== body) throw malformed(what)
  return bytes
}

function serial(bytes: Buffer, at: number, what: 'session' | 'hold'): Serial {
  const value = bytes.readUIntBE(at, SERIAL_BYTES)
  if (value < 1 || value > COUNTER_MAX) throw malformed(what)
  return value as Serial
}

function hex(bytes: Buffer, at: number): Hex128 {
  return bytes.subarray(at, at + SECRET_BYTES).toString('hex')
}

function checkEpoch(bytes: Buffer, epoch: number, what: string): void {
  const of = bytes.readUInt16BE(1)
  if (of > EPOCH_MAX) throw malformed(what)
  if (of !== epoch) throw otherEpoch(`this ${what} handle`, of, epoch)
}

export function otherEpoch(what: string, of: number, epoch: number): EpochChangedError {
  return new EpochChangedError(`${what} is from epoch ${of}, but the service is in epoch ${epoch}`, {
    hint: 'the service was restored from a backup: open a new session and acquire again',
  })
}

function malformed(what: string): InvalidError {
  const from =
    what === 'hold'
      ? '"leasehold acquire" printed, or POST /v1/acquire returned as "hold"'
      : 'POST /v1/sessions returned as "session"'
  return new InvalidError(`not a ${what} handle`, {
    hint: `send the text that ${from}, unchanged`,
  })
}
