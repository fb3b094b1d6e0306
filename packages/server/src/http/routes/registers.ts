import {
  type Fence,
  type HeldLock,
  InvalidError,
  NotHolderError,
  type Numbered,
  registerOf,
  registersOf,
} from '@leasehold/core'
import { isJson, readBody, readJson } from '../request-body.js'
import { WRITE_TTL_MS } from '../../limits.js'
import { parseHoldHandle, parseSessionHandle } from '../handles.js'
import type { HttpSession } from '../http-session.js'
import { findHold } from '../hold-service.js'
import { HttpError } from '../problems.js'
import { deleteResponse, putResponse, registerResponse, registersResponse } from '../response-schemas.js'
import { type Call, json, type Route, route } from '../route.js'
import { check, registerPutBody, registerQuery, registersQuery, registerWriteQuery } from '../request-schemas.js'
import { registerJson } from '../json-views.js'

interface WriteOptions {
  readonly ifVersion?: bigint | undefined
  readonly fence?: string | undefined
  readonly lock?: string | undefined
  readonly session?: string | undefined
  readonly request?: number | undefined
}

type WriteCommand =
  | { readonly kind: 'put'; readonly key: string; readonly value: Uint8Array }
  | { readonly kind: 'delete'; readonly key: string }

/** Maps `If-Match: "7"` to version 7, and `If-None-Match: *` to version 0. */
function headerVersion(call: Call<unknown, unknown>): bigint | undefined {
  const match = call.context.req.header('if-match')
  const none = call.context.req.header('if-none-match')
  if (match === undefined && none === undefined) return undefined
  if (match === undefined && none?.trim() === '*') return 0n
  const version = /^"?([1-9][0-9]{0,18})"?$/.exec(match?.trim() ?? '')
  if (version === null || none !== undefined) {
    throw new InvalidError('the precondition header is not valid', {
      hint: 'send If-Match: "VERSION" for that version, or If-None-Match: * for a register that must not exist',
    })
  }
  return BigInt(version[1] as string)
}

/** Merges the options of query, body and headers. @throws InvalidError when they contradict each other */
function mergeOptions(call: Call<unknown, WriteOptions>, body: WriteOptions): WriteOptions {
  const { query } = call
  const fromHeader = headerVersion(call)
  const merged: Record<string, unknown> = {}
  for (const name of ['ifVersion', 'fence', 'lock', 'session', 'request'] as const) {
    const given = [query[name], body[name], name === 'ifVersion' ? fromHeader : undefined].filter(
      (one) => one !== undefined,
    )
    if (given.length > 1 && given.some((one) => one !== given[0]))
      throw new InvalidError(`${name} is given twice, with different values`)
    merged[name] = given[0]
  }
  return merged
}

/** The hold and lock that fence the write, and the session that owns the hold. */
async function resolveFence(call: Call<unknown, unknown>, options: WriteOptions) {
  const { services, status } = call
  if (options.fence === undefined) {
    if (options.lock !== undefined)
      throw new InvalidError('lock is given without fence', { hint: 'fence is the handle of a hold' })
    return undefined
  }
  const handle = parseHoldHandle(options.fence, status.epoch)
  const hold = await findHold(services.replica, handle)
  if (hold === undefined) throw new NotHolderError(`hold ${handle.hold} does not exist`)
  const lock = options.lock ?? (hold.locks[0] as HeldLock).name
  if (options.lock === undefined && hold.locks.length > 1) {
    throw new InvalidError('the hold has several locks', { hint: 'name the one that fences the register as "lock"' })
  }
  const fence: Fence = { hold: handle.hold, lock }
  return { fence, session: hold.session === handle.session?.session ? handle.session : undefined }
}

async function write(
  call: Call<unknown, WriteOptions>,
  what: WriteCommand,
  options: WriteOptions,
): Promise<bigint | undefined> {
  const { sessions, replica } = call.services
  const fenced = await resolveFence(call, options)
  const { ifVersion, request } = options
  const named = options.session === undefined ? fenced?.session : parseSessionHandle(options.session, call.status.epoch)
  const extra = {
    ...(ifVersion === undefined ? {} : { ifVersion }),
    ...(fenced === undefined ? {} : { fence: fenced.fence }),
  }
  const command = { ...what, ...extra }
  const resultOf = (result: { kind: 'put'; version: bigint } | { kind: 'deleted' }) =>
    result.kind === 'put' ? result.version : undefined
  if (named === undefined && request !== undefined)
    throw new InvalidError('a request number is valid only within a session')
  if (named === undefined && ifVersion !== undefined && ifVersion > 0n) {
    return resultOf(await replica.submit(command, 'put', 'deleted'))
  }
  const session =
    named === undefined ? await sessions.open({ ttlMs: WRITE_TTL_MS, client: 'http write' }) : await sessions.use(named)
  const build = (numbered: Numbered) => ({ ...command, ...numbered })
  const written = sessions.numbered(session, request, build, 'put', 'deleted')
  // Both commands enter the log together.
  if (named === undefined) closeLater(call, session)
  return resultOf(await written)
}

/** Closes the session of a single write in the background; if that fails, the session expires after its TTL. */
function closeLater(call: Call<unknown, unknown>, session: HttpSession): void {
  call.services.sessions.close(session, 'its write is done').catch((error: unknown) => {
    call.services.log.info('cannot close the session of a write', { error: String(error) })
  })
}

const etag = (version: bigint) => ({ etag: `"${version}"`, 'leasehold-version': String(version) })

export const registerRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/registers/list',
    summary: 'List the registers below a prefix, ordered by key, without their values.',
    response: registersResponse,
    query: registersQuery,
    async handle({ services, query, status, authorize }) {
      const { stale, ...asked } = query
      authorize('read', [asked.prefix ?? ''])
      const { registers, next } = await services.replica.read(stale ?? false, ({ state }) => registersOf(state, asked))
      const shown = registers.map(({ key, version, lock, bytes }) => ({
        key,
        version: String(version),
        ...(lock === undefined ? {} : { lock }),
        bytes,
      }))
      return json(status, { registers: shown, next: next ?? null })
    },
  }),
  route({
    method: 'GET',
    path: '/v1/registers',
    summary: 'Read a register as JSON, or as raw bytes with Accept: application/octet-stream.',
    response: registerResponse,
    query: registerQuery,
    async handle({ services, query, status, context, authorize }) {
      authorize('read', [query.key])
      const view = await services.replica.read(query.stale ?? false, ({ state }) => registerOf(state, query.key))
      if (view === undefined) {
        throw new HttpError(
          404,
          'There is no such register',
          `the register ${JSON.stringify(query.key)} does not exist`,
        )
      }
      const lock: Record<string, string> =
        view.lock === undefined ? {} : { 'leasehold-lock': encodeURIComponent(view.lock) }
      const headers = { ...etag(view.version), ...lock }
      if (!(context.req.header('accept') ?? '').includes('application/octet-stream')) {
        return json(status, registerJson(view), headers)
      }
      const raw = { 'content-type': 'application/octet-stream', ...headers }
      return new Response(Uint8Array.from(view.value), { headers: raw })
    },
  }),
  route({
    method: 'PUT',
    path: '/v1/registers',
    summary: 'Write a register: {"value": …} as application/json, or raw bytes with any other content type.',
    response: putResponse,
    takes: { json: registerPutBody, bytes: true },
    query: registerWriteQuery,
    async handle(call) {
      const { query, status, context } = call
      call.authorize('acquire', [query.key])
      const { value, ...body } = isJson(context)
        ? check(registerPutBody, await readJson(context), 'body')
        : { value: await readBody(context) }
      const version = (await write(call, { kind: 'put', key: query.key, value }, mergeOptions(call, body))) as bigint
      return json(status, { key: query.key, version: String(version) }, etag(version))
    },
  }),
  route({
    method: 'DELETE',
    path: '/v1/registers',
    summary: 'Delete a register.',
    response: deleteResponse,
    query: registerWriteQuery,
    async handle(call) {
      const { query, status } = call
      call.authorize('acquire', [query.key])
      await write(call, { kind: 'delete', key: query.key }, mergeOptions(call, {}))
      return json(status, { key: query.key, deleted: true })
    },
  }),
]
