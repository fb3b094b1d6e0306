import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ErrorDetails,
  errorOf,
  InvalidError,
  isErrorCode,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'
import { apiKeyOf, type ClientTls, type ServiceOptions, tlsOf, urlOf } from './service-client.js'

/** Bound on the size of a response; responses to these commands are far smaller. */
const RESPONSE_BYTES_MAX = 8 * 1024 * 1024

/** The status of a redirect to the leader, with the same method and body. */
const REDIRECT = 307

/** Connection failures: nothing was sent, so the request may go to the next member. */
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])

/** Bound on an election. Until then, requests are retried instead of failing with `no-quorum`. */
const ELECTION_LIMIT_MS = 5000
const ELECTION_RETRY_MS = 200
/** Bound on redirects. More than one happens only during a leader change. */
const REDIRECTS_MAX = 3

export interface CallOptions {
  readonly method?: 'GET' | 'POST'
  /** The request is idempotent, so it may be resent when its response was lost. Default false. */
  readonly repeatable?: boolean
  /** After this time without a response, the request goes to the next member, or its outcome is unknown. Default: unlimited. */
  readonly timeoutMs?: number
}

interface Access {
  readonly key: string | undefined
  readonly tls: ClientTls
}

/**
 * Sends one request to the HTTP interface of the service, for handles that outlive this process. Tries several URLs in turn,
 * follows redirects to the leader, and retries for the time of an election while there is no leader.
 */
export async function callService(
  options: ServiceOptions,
  path: string,
  body?: unknown,
  call: CallOptions = {},
): Promise<unknown> {
  const urls = serviceUrls(options)
  const access = { key: apiKeyOf(options), tls: tlsOf(options) }
  let end: number | undefined
  let lost: UnknownOutcomeError | undefined
  for (;;) {
    let last: unknown
    for (const url of urls) {
      try {
        return await sendToLeader(new URL(path, url), access, body, call)
      } catch (error) {
        if (!mayRetry(error, call)) throw error
        if (error instanceof UnknownOutcomeError) lost = error
        // A response is more informative than a failed connection.
        if (last === undefined || isNoQuorum(error)) last = error
      }
    }
    if (!isNoQuorum(last)) throw lost ?? cannotReach(urls, last)
    end ??= performance.now() + ELECTION_LIMIT_MS
    if (performance.now() > end) throw lost ?? last
    await sleep(ELECTION_RETRY_MS)
  }
}

/** Whether the URL is that of a Leasehold service, and not of another engine. */
export function isService(options: ServiceOptions): boolean {
  return /^https?:/i.test(urlOf(options))
}

function serviceUrls(options: ServiceOptions): string[] {
  const urls = urlOf(options)
    .split(',')
    .map((url) => url.trim())
  const odd = urls.find((url) => !/^https?:\/\//.test(url))
  if (odd === undefined) return urls
  // A URL of another engine may have a password in it.
  throw new InvalidError(`this command needs a Leasehold service, not ${odd.replace(/\/\/[^@/]*@/, '//')}`, {
    hint: 'start one with: leasehold serve, and name it with --url http://HOST:PORT; `leasehold run` works with every engine',
  })
}

function mayRetry(error: unknown, { repeatable }: CallOptions): boolean {
  if (isNotSent(error) || isNoQuorum(error)) return true
  return repeatable === true && error instanceof UnknownOutcomeError && error.cause !== undefined
}

function isNotSent(error: unknown): boolean {
  return NOT_SENT.has((error as NodeJS.ErrnoException).code ?? '')
}

function isNoQuorum(error: unknown): boolean {
  return error instanceof UnavailableError && error.code === 'no-quorum'
}

function cannotReach(urls: readonly string[], cause: unknown): UnavailableError {
  return new UnavailableError(`cannot reach ${urls.join(', ')}`, { cause })
}

/** Sends the request, and resends it to the leader if the member redirects there. */
async function sendToLeader(url: URL, access: Access, body: unknown, call: CallOptions): Promise<unknown> {
  let target = url
  for (let hop = 0; hop < REDIRECTS_MAX; hop++) {
    let response: { location: string } | { value: unknown }
    try {
      response = await send(target, access, body, call)
    } catch (error) {
      // The leader has just failed: the others will soon elect another one.
      if (hop > 0 && isNotSent(error)) throw noLeaderAt(target, error)
      throw error
    }
    if ('value' in response) return response.value
    target = new URL(response.location, target)
  }
  throw noLeaderAt(target)
}

function noLeaderAt(url: URL, cause?: unknown): UnavailableError {
  return new UnavailableError(`the leader is no longer at ${url.origin}`, { code: 'no-quorum', cause })
}

function send(
  url: URL,
  { key, tls }: Access,
  body: unknown,
  { method = 'POST', timeoutMs }: CallOptions,
): Promise<{ location: string } | { value: unknown }> {
  const text = body === undefined ? undefined : JSON.stringify(body)
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const request = open(url, {
      method,
      ...tls,
      headers: {
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      ...(timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) }),
    })
    const lost = (error: Error): void =>
      reject(new UnknownOutcomeError(`the response of ${url.origin} was lost: ${error.message}`, { cause: error }))
    request.on('error', (error) => (isNotSent(error) ? reject(error) : lost(error)))
    request.on('response', (response) => {
      const { location } = response.headers
      if (response.statusCode === REDIRECT && location !== undefined) {
        response.resume()
        return resolve({ location })
      }
      response.once('error', lost)
      readResponse(response).then((value) => resolve({ value }), reject)
    })
    request.end(text)
  })
}

async function readResponse(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > RESPONSE_BYTES_MAX) throw new UnavailableError(`the response has more than ${RESPONSE_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  const status = response.statusCode ?? 0
  const answer = parse(text)
  if (status >= 200 && status < 300 && answer !== undefined) return answer
  throw problem(status, answer, text)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function problem(status: number, answer: unknown, body: string): Error {
  const fields = (typeof answer === 'object' && answer !== null ? answer : {}) as Record<string, unknown>
  const { code, message, detail } = fields
  if (isErrorCode(code)) {
    const given = [message, detail].find((value) => typeof value === 'string') ?? code
    const details: ErrorDetails = { hint: text(fields.hint), reason: text(fields.reason) as ErrorDetails['reason'] }
    return errorOf(code, String(given), details)
  }
  return new UnavailableError(`the service responded with ${status}: ${body.slice(0, 200)}`, {
    hint: 'is this the URL of a Leasehold service?',
  })
}
