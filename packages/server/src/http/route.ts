import type { HttpBindings } from '@hono/node-server'
import type { LeaseholdError, MayRead, SessionId } from '@leasehold/core'
import type { MemberStatus } from '@leasehold/replica'
import type { Context } from 'hono'
import type { z } from 'zod'
import type { AccessVerb, AuditRecord, Cost } from '../security/index.js'
import type { Services } from './services.js'

export type HttpContext = Context<{ Bindings: HttpBindings }>

/** A request that passed the schemas of its route. */
export interface Call<Body, Query> {
  readonly services: Services
  readonly body: Body
  readonly query: Query
  readonly status: MemberStatus
  readonly context: HttpContext
  /** Aborts when the client disconnects before the response was sent. */
  readonly disconnected: AbortSignal
  /** @throws AccessError unless the caller has the permission for all of these names */
  readonly authorize: (verb: AccessVerb, names: readonly string[], cost?: Cost) => void
  /** The error if an earlier permission no longer holds: the key was revoked, or the web token expired. */
  readonly revocationOf: (verb: AccessVerb, names: readonly string[]) => LeaseholdError | undefined
  /** Whether the caller may read a name that belongs to the same hold or wait as a requested one. */
  readonly mayRead: MayRead
  /**
   * Reserves a session, or a waiting acquire, in the quota of the caller. Returns a function that ends the reservation
   * once the request was applied.
   * @throws LimitError when the quota is used up
   */
  readonly reserveSession: () => () => void
  readonly reserveWaiter: () => () => void
  /** Records the caller as the owner of a session whose secret it presented. */
  readonly recordOwner: (session: SessionId) => void
  /** Writes a record to the audit log. */
  readonly audit: (record: AuditRecord) => void
}

/**
 * One operation: its path, schemas and handler. The OpenAPI document is built from these records, so a route must not
 * depend on anything outside its record.
 */
export interface Route<Body extends z.ZodType = z.ZodType, Query extends z.ZodType = z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly summary: string
  readonly query: Query
  /** The handle in the request is sufficient proof: an expired key does not prevent a release. */
  readonly handleIsProof?: true
  /** Schema of the JSON body; undefined if there is none, or if the route reads the body itself. */
  readonly body?: Body
  /** Schema of a successful JSON response; undefined for the content type that `produces` names. */
  readonly response?: z.ZodType
  /** Content type of a successful response that is not JSON. */
  readonly produces?: string
  /** A body that the route reads itself: its JSON schema, and whether raw bytes are accepted as well. */
  readonly takes?: { readonly json: z.ZodType; readonly bytes: boolean }
  handle(call: Call<z.output<Body>, z.output<Query>>): Promise<Response> | Response
}

/** Ties the types of body and query to the handler. */
export function route<Body extends z.ZodType, Query extends z.ZodType>(one: Route<Body, Query>): Route {
  return one as unknown as Route
}

/** A successful JSON response; every one contains `cluster` and `epoch`. */
export function json(
  status: MemberStatus,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Response {
  const text = JSON.stringify({ ...body, cluster: status.cluster, epoch: status.epoch })
  return new Response(`${text}\n`, { status: 200, headers: { 'content-type': 'application/json', ...headers } })
}
