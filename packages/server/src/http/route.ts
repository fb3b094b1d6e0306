import type { HttpBindings } from '@hono/node-server'
import type { LeaseholdError, MayRead, SessionId } from '@leasehold/core'
import type { MemberStatus } from '@leasehold/replica'
import type { Context } from 'hono'
import type { z } from 'zod'
import type { AccessVerb, AuditRecord, Cost } from '../security/index.js'
import type { Services } from './services.js'

export type HttpContext = Context<{ Bindings: HttpBindings }>

/** A request that has passed the checks of its route. */
export interface Call<Body, Query> {
  readonly services: Services
  readonly body: Body
  readonly query: Query
  readonly status: MemberStatus
  readonly context: HttpContext
  /** Aborts when the client goes away before it has its answer. */
  readonly gone: AbortSignal
  /** Throws unless the caller may do this to all of these names. */
  readonly allow: (verb: AccessVerb, names: readonly string[], cost?: Cost) => void
  /** Why what was allowed may not go on: the key was revoked, or the web token has ended. Undefined: it may. */
  readonly ends: (verb: AccessVerb, names: readonly string[]) => LeaseholdError | undefined
  /** Whether a name may be told beside one that was asked for: both are of one hold or wait. */
  readonly mayRead: MayRead
  /**
   * Throws when the caller has as many sessions, or waiting acquires, as it may have. Returns what tells that the question
   * was answered; until then it counts.
   */
  readonly mayOpen: () => () => void
  readonly mayWait: () => () => void
  /** The caller has shown that this session is its own. */
  readonly owns: (session: SessionId) => void
  /** Writes a line of the audit. */
  readonly did: (record: AuditRecord) => void
}

/**
 * One operation: what it takes, and what does it. The list of routes is the base of the API's description, so a route
 * has no knowledge that is not in this record.
 */
export interface Route<Body extends z.ZodType = z.ZodType, Query extends z.ZodType = z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly summary: string
  readonly query: Query
  /** The handle in the request proves that the caller may: a key that has expired does not keep it from giving back. */
  readonly provesItself?: true
  /** The JSON body; undefined: the route takes none, or reads it itself. */
  readonly body?: Body
  /** What a success answers as JSON; undefined: something else, which `produces` names. */
  readonly answer?: z.ZodType
  /** Content type of a success that is no JSON. */
  readonly produces?: string
  /** A body that the route reads itself: its schema where it is JSON, and whether it may be bytes as well. */
  readonly takes?: { readonly json: z.ZodType; readonly bytes: boolean }
  handle(call: Call<z.output<Body>, z.output<Query>>): Promise<Response> | Response
}

/** Keeps the types of a route's body and query together with its handler. */
export function route<Body extends z.ZodType, Query extends z.ZodType>(one: Route<Body, Query>): Route {
  return one as unknown as Route
}

/** A JSON answer; `cluster` and `epoch` are in every one. */
export function json(
  status: MemberStatus,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Response {
  const text = JSON.stringify({ ...body, cluster: status.cluster, epoch: status.epoch })
  return new Response(`${text}\n`, { status: 200, headers: { 'content-type': 'application/json', ...headers } })
}
