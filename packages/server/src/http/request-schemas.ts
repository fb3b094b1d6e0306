import {
  checkName,
  type Cursor,
  InvalidError,
  type LockRequest,
  type Mode,
  nameProblem,
  parseCursor,
  parseDuration,
  parseToken,
  PERMITS_MAX,
  WAIT_FOREVER,
} from '@leasehold/core'
import { z } from 'zod'

/*
 * The schemas of requests. They validate and convert in one step, and the OpenAPI document is built from them. A
 * LeaseholdError thrown by a transform reaches the client with its message and hint.
 */

/** JSON schemas, for the OpenAPI document, of fields that a function validates. */
const DESCRIBED = {
  name: {
    type: 'string',
    minLength: 1,
    description: 'name of a lock or register: 1 to 512 bytes, no control characters',
    examples: ['billing/invoice-42'],
  },
  prefix: {
    type: 'string',
    description: 'whole path segments: billing matches billing and billing/x',
    examples: ['billing'],
  },
  id: {
    type: 'string',
    pattern: '^[0-9]{1,19}$',
    description: 'a full id as a string of decimal digits, never a JSON number',
  },
  version: {
    type: 'string',
    pattern: '^[0-9]{1,19}$',
    description: 'version of a register as a string of decimal digits; "0": the register must not exist',
  },
  duration: { type: ['string', 'number'], description: 'milliseconds, or 250ms, 10s, 5m, 2h, 1d', examples: ['10s'] },
  wait: {
    type: ['string', 'number'],
    description: 'how long to wait in the queue: a duration, 0 or Infinity',
    examples: ['30s', 0],
  },
  data: { description: 'owner data, visible to others: a string unchanged, any other value as JSON; at most 4 KiB' },
} as const

const NONCE = /^[0-9a-f]{32}$/
const DEFAULT_TTL = '10s'
const DEFAULT_WAIT = '30s'
const PAGE_MAX = 1_000

const text = (what: string) =>
  z
    .string({ error: `${what} is a string` })
    .max(256, `${what} has at most 256 characters`)
    .refine((value) => Buffer.byteLength(value) <= 256, `${what} has at most 256 bytes`)

const handle = (what: string) =>
  z.string({ error: `${what} is the handle that the service returned, a string` }).max(512)

/** The name of a lock or register. */
const name = z
  .unknown()
  .transform((value) => checkName(value))
  .meta(DESCRIBED.name)

const prefix = z
  .string()
  .transform((value) => {
    const problem = value === '' ? undefined : nameProblem(value)
    if (problem !== undefined) throw new InvalidError(`the prefix is not a valid name: ${problem}`)
    return value
  })
  .meta(DESCRIBED.prefix)

/** A full id, as a decimal string. A JSON number is rejected: above 2^53 it has already lost digits. */
const id = z
  .unknown()
  .transform((value) => parseToken(value as string))
  .meta(DESCRIBED.id)

/** The version of a register as a decimal string; `"0"`: the register must not exist. */
const version = z
  .unknown()
  .transform((value) => (value === '0' ? 0n : (parseToken(value as string) as bigint)))
  .meta(DESCRIBED.version)

const duration = (what: string, options: { noSmallNumbers?: boolean } = {}) =>
  z
    .unknown()
    .transform((value) => parseDuration(value as string, what, options) as number)
    .meta(DESCRIBED.duration)

const ttl = duration('ttl', { noSmallNumbers: true })

const wait = z
  .unknown()
  .transform((value): number => {
    if (value === 'Infinity') return WAIT_FOREVER
    return parseDuration(value as string, 'wait', { noSmallNumbers: true })
  })
  .meta(DESCRIBED.wait)

const permits = z.number({ error: 'permits is the size of the semaphore, a number' }).int().min(1).max(PERMITS_MAX)

const mode = z.union([z.literal('exclusive'), z.literal('shared'), z.strictObject({ permits })], {
  error: `mode is "exclusive", "shared" or {"permits": n}`,
})

const lock = z.union([z.string(), z.strictObject({ name, mode: mode.optional(), permits: permits.optional() })], {
  error: 'a lock is a name or {"name", "mode"}',
})

/** A request number, for clients that retry a request whose response was lost. */
const request = z
  .number({ error: 'request is a number: 1, 2, 3 … per session' })
  .int()
  .min(1)
  .max(Number.MAX_SAFE_INTEGER)

const nonce = z.string().regex(NONCE, 'a nonce is 32 lower-case hex digits, chosen at random')

/** Owner data: a string unchanged, any other value as JSON. */
const data = z
  .unknown()
  .transform((value): Uint8Array => {
    return utf8(typeof value === 'string' ? value : jsonText(value))
  })
  .meta(DESCRIBED.data)

function utf8(out: string): Uint8Array {
  return new Uint8Array(Buffer.from(out, 'utf8'))
}

function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    throw new InvalidError('the JSON is nested too deeply', { cause: error })
  }
}

const flag = z.boolean()

/** `true` in a query string. */
const queryFlag = z.enum(['true', 'false', '1', '0', '']).transform((value) => value !== 'false' && value !== '0')

function modeOf(given: Mode | undefined, size: number | undefined): Mode {
  if (size === undefined) return given ?? 'exclusive'
  if (given === undefined || (typeof given === 'object' && given.permits === size)) return { permits: size }
  throw new InvalidError('mode and permits contradict each other', { hint: 'give one of the two' })
}

function lockOf(given: z.output<typeof lock>): LockRequest {
  if (typeof given === 'string') return { name: checkName(given), mode: 'exclusive' }
  return { name: given.name, mode: modeOf(given.mode, given.permits) }
}

export const openSessionBody = z.strictObject({
  ttl: ttl.default(() => parseDuration(DEFAULT_TTL, 'ttl') as number),
  client: text('client').default(''),
  nonce: nonce.optional(),
})

export const acquireBody = z
  .strictObject({
    name: name.optional(),
    locks: z.array(lock, { error: 'locks is a list of names or {"name", "mode"}' }).min(1).max(1_000).optional(),
    mode: mode.optional(),
    permits: permits.optional(),
    ttl: ttl.optional(),
    wait: wait.default(() => parseDuration(DEFAULT_WAIT, 'wait') as number),
    session: handle('session').optional(),
    request: request.optional(),
    nonce: nonce.optional(),
    client: text('client').optional(),
    data: data.optional(),
    lockDelay: duration('lockDelay').optional(),
    persistent: flag.optional(),
    portable: flag.optional(),
  })
  .transform(({ name: single, locks, mode: given, permits: size, ...rest }) => {
    if ((single === undefined) === (locks === undefined)) {
      throw new InvalidError('an acquire needs either name or locks', {
        hint: '{"name": "a"} or {"locks": ["a", {"name": "b", "mode": "shared"}]}',
      })
    }
    if (locks !== undefined && (given !== undefined || size !== undefined)) {
      throw new InvalidError('with locks, each lock has a mode of its own', {
        hint: '{"locks": [{"name": "a", "mode": "shared"}]}',
      })
    }
    const requests = locks?.map(lockOf) ?? [{ name: single as string, mode: modeOf(given, size) }]
    return { ...rest, locks: requests, ttl: rest.ttl ?? undefined }
  })

export const renewBody = z
  .strictObject({ hold: handle('hold').optional(), session: handle('session').optional() })
  .transform((body) => {
    if ((body.hold === undefined) === (body.session === undefined)) {
      throw new InvalidError('a renewal names either a hold or a session', {
        hint: 'send {"hold": …} or {"session": …}',
      })
    }
    return body
  })

export const releaseBody = z.strictObject({ hold: handle('hold') })

/** `number` is the request number of the cancel itself, for clients that number their requests. */
export const cancelBody = z.strictObject({ session: handle('session'), request, number: request.optional() })

export const adoptBody = z.strictObject({
  hold: handle('hold'),
  session: handle('session').optional(),
  request: request.optional(),
  ttl: ttl.optional(),
  client: text('client').optional(),
})

export const stealBody = z
  .strictObject({
    name: name.optional(),
    hold: id.optional(),
    reason: text('reason').min(1),
    actor: text('actor').default(''),
  })
  .transform((body) => {
    if ((body.name === undefined) === (body.hold === undefined)) {
      throw new InvalidError('a steal names either a lock or a hold', {
        hint: 'send {"name": …} or {"hold": "the decimal id of GET /v1/locks"}',
      })
    }
    return body
  })

export const endSessionBody = z.strictObject({
  session: z.string({ error: 'session is a handle or a decimal id, as a string' }).max(512),
  reason: text('reason').default(''),
})

const limit = z
  .string()
  .regex(/^[0-9]{1,4}$/, `limit is a number up to ${PAGE_MAX}`)
  .transform(Number)
  .refine((value) => value >= 1 && value <= PAGE_MAX, `limit is 1 to ${PAGE_MAX}`)
  .optional()

const page = {
  limit,
  cursor: z.string().max(2_048).optional(),
  stale: queryFlag.optional(),
}

export const locksQuery = z.strictObject({ prefix: prefix.optional(), name: name.optional(), ...page })

export const sessionsQuery = z.strictObject(page)

export const registersQuery = z.strictObject({
  prefix: prefix.optional(),
  limit,
  after: name.optional(),
  stale: queryFlag.optional(),
})

export const registerQuery = z.strictObject({ key: name, stale: queryFlag.optional() })

const writeOptions = {
  ifVersion: version.optional(),
  /** The handle of an exclusive hold. */
  fence: handle('fence').optional(),
  /** The lock of the hold that fences the write; optional if the hold has only one. */
  lock: name.optional(),
  session: handle('session').optional(),
}

const numberText = z
  .string()
  .regex(/^[1-9][0-9]{0,15}$/, 'request is a number: 1, 2, 3 … per session')
  .transform(Number)
  .refine(Number.isSafeInteger)

export const registerWriteQuery = z.strictObject({ key: name, ...writeOptions, request: numberText.optional() })

/** The JSON form of a put. With any other content type, the body is the value, byte for byte. */
export const registerPutBody = z
  .strictObject({
    value: z.unknown(),
    encoding: z.enum(['json', 'text', 'base64']).default('json'),
    ...writeOptions,
    request: request.optional(),
  })
  .transform(({ value, encoding, ...rest }) => ({ ...rest, value: valueBytes(value, encoding) }))

function valueBytes(value: unknown, encoding: 'json' | 'text' | 'base64'): Uint8Array {
  if (encoding === 'json') {
    if (value === undefined)
      throw new InvalidError('the value is missing', {
        hint: 'send {"value": …}, or raw bytes with another content type',
      })
    return utf8(jsonText(value))
  }
  if (typeof value !== 'string') throw new InvalidError(`with encoding ${encoding} the value is a string`)
  if (encoding === 'text') return utf8(value)
  const bytes = Buffer.from(value, 'base64')
  if (bytes.toString('base64') !== value) throw new InvalidError('the value is not canonical base64')
  return new Uint8Array(bytes)
}

export const watchQuery = z.strictObject({
  prefix: prefix.default(''),
  from: z
    .string()
    .transform((value): Cursor => parseCursor(value))
    .optional(),
})

export const backupQuery = z.strictObject({ stale: queryFlag.optional() })

const memberName = z.string({ error: 'name is the name of a member, a string' }).min(1).max(64)

export const clusterAddBody = z.strictObject({
  name: memberName,
  peer: z
    .string({ error: 'peer is the HOST:PORT where the member listens for other members, a string' })
    .min(3)
    .max(256),
})

export const clusterNameBody = z.strictObject({ name: memberName })

export const noQuery = z.strictObject({})

/** Validates and converts `value`. @throws InvalidError that names the field and the expected value */
export function check<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const done = schema.safeParse(value)
  if (done.success) return done.data
  const issue = done.error.issues[0]
  const path = issue === undefined ? '' : issue.path.map(String).join('.')
  throw new InvalidError(`${where}${path === '' ? '' : ` ${JSON.stringify(path)}`}: ${issue?.message ?? 'wrong'}`)
}
