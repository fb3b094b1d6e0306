import { ERRORS } from '@leasehold/core'
import { z } from 'zod'

/*
 * The schemas of responses. The OpenAPI document is built from them, and the tests validate every response against them;
 * nothing is validated at run time.
 */

const id = z
  .string()
  .regex(/^[0-9]{1,19}$/)
  .meta({ description: 'a string of decimal digits' })
const ms = z.number().int()
const mode = z.union([z.literal('exclusive'), z.literal('shared'), z.strictObject({ permits: z.number().int() })])
const common = { cluster: z.string().meta({ description: 'id of the cluster' }), epoch: z.number().int() }

const heldLock = z.strictObject({
  name: z.string(),
  mode,
  token: id.meta({ description: 'the fencing token' }),
  slot: z.number().int().optional(),
})

export const grantResponse = z.strictObject({
  hold: z.string().meta({ description: 'handle of the hold for renew and release; keep it secret' }),
  id: id.meta({ description: 'id of the hold' }),
  token: id.meta({ description: 'fencing token of the first lock that is not shared' }),
  slot: z.number().int().optional(),
  names: z.array(z.string()),
  tokens: z.record(z.string(), id).meta({ description: 'fencing token of each lock' }),
  slots: z.record(z.string(), z.number().int()).optional(),
  locks: z.array(heldLock),
  expiresInMs: ms.nullable(),
  ttlMs: ms.nullable(),
  ...common,
})

export const renewResponse = z.strictObject({ id, expiresInMs: ms.nullable(), ttlMs: ms.optional(), ...common })
export const releaseResponse = z.strictObject({ released: z.literal(true), id, ...common })
export const stealResponse = z.strictObject({ stolen: z.array(id), ...common })
export const cancelResponse = z.strictObject({ was: z.enum(['queued', 'granted', 'ended', 'unknown']), ...common })
export const sessionResponse = z.strictObject({
  session: z.string().meta({ description: 'handle of the session; keep it secret' }),
  id,
  ttlMs: ms,
  expiresInMs: ms,
  ...common,
})
export const sessionEndResponse = z.strictObject({ ended: id, ...common })

const session = z.strictObject({
  session: id,
  client: z.string(),
  ttlMs: ms,
  remainingMs: ms,
  holds: z.number().int(),
  waiters: z.number().int(),
})
const next = z.string().nullable().meta({ description: 'cursor of the next page' })

export const sessionsResponse = z.strictObject({ sessions: z.array(session), next, ...common })

const bytes = { data: z.string().optional(), dataBase64: z.string().optional() }

export const locksResponse = z.strictObject({
  held: z.array(
    z.strictObject({
      hold: id,
      locks: z.array(heldLock),
      session: id.nullable(),
      client: z.string(),
      persistent: z.boolean(),
      ageMs: ms,
      remainingMs: ms.nullable(),
      ...bytes,
    }),
  ),
  pending: z.array(
    z.strictObject({
      session: id,
      request: z.number().int(),
      client: z.string(),
      locks: z.array(z.strictObject({ name: z.string(), mode })),
      waitingMs: ms,
      remainingMs: ms.nullable(),
    }),
  ),
  delays: z.array(z.strictObject({ name: z.string(), mode, slot: z.number().int().optional(), remainingMs: ms })),
  sessions: z.array(session),
  next,
  at: z.string().meta({ description: 'a watch from this cursor delivers everything after this response' }),
  ...common,
})

export const registerResponse = z.strictObject({
  key: z.string(),
  version: id,
  lock: z.string().optional(),
  value: z.unknown(),
  encoding: z.enum(['json', 'text', 'base64']),
  ...common,
})
export const registersResponse = z.strictObject({
  registers: z.array(
    z.strictObject({ key: z.string(), version: id, lock: z.string().optional(), bytes: z.number().int() }),
  ),
  next: z.string().nullable().meta({ description: 'the `after` of the next page' }),
  ...common,
})
export const putResponse = z.strictObject({ key: z.string(), version: id, ...common })
export const deleteResponse = z.strictObject({ key: z.string(), deleted: z.literal(true), ...common })

const index = z.number().int()
export const clusterResponse = z.strictObject({
  member: z.string(),
  role: z.enum(['leader', 'follower', 'candidate', 'learner', 'stopped']),
  leader: z.string(),
  leaderUrl: z.string(),
  url: z.string(),
  term: index,
  commitIndex: index,
  appliedIndex: index,
  disk: z.enum(['ok', 'full']),
  failure: z.string().optional(),
  members: z
    .array(
      z.strictObject({
        name: z.string(),
        url: z.string(),
        peer: z.string(),
        role: z.enum(['voter', 'learner']),
        matchIndex: index.optional(),
      }),
    )
    .optional(),
  ...common,
})
export const changeResponse = z.strictObject({ index, ...common })
export const transferResponse = z.strictObject({ asked: z.string(), ...common })

/** The body of every error response: RFC 9457, with the fields of the error table. */
export const problemResponse = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  code: z.enum(Object.keys(ERRORS) as [string, ...string[]]),
  detail: z.string(),
  hint: z.string().optional(),
  retryable: z.boolean(),
})
