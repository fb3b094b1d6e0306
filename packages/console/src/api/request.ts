import type { Problem } from './types.js'

/** The service responded with an error. */
export class RequestRefused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail)
  }
}

/** There was no response, or one that is not from the service. */
export class NoResponse extends Error {}

export interface RequestTarget {
  /** URL of a member; '' for the member that served this page. */
  readonly base: string
  readonly key: string
}

const RESPONSE_TIMEOUT_MS = 3_000

/** Sends one request. @throws RequestRefused, NoResponse */
export async function sendRequest<T>(
  { base, key }: RequestTarget,
  path: string,
  options: { body?: unknown; timeoutMs?: number } = {},
): Promise<T> {
  const { body, timeoutMs = RESPONSE_TIMEOUT_MS } = options
  const response = await fetchJson(base + path, timeoutMs, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...credentials(key), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return response as T
}

async function fetchJson(url: string, timeoutMs: number, init: RequestInit): Promise<unknown> {
  let response: Response
  let answer: unknown
  try {
    response = await fetch(url, { ...init, cache: 'no-store', signal: AbortSignal.timeout(timeoutMs) })
    answer = await response.json()
  } catch (error) {
    const late = error instanceof DOMException && error.name === 'TimeoutError'
    throw new NoResponse(late ? `no response within ${timeoutMs / 1000} s` : 'no connection')
  }
  if (!response.ok) throw new RequestRefused(problemFrom(response.status, answer))
  return answer
}

export function credentials(key: string): Record<string, string> {
  return key === '' ? {} : { authorization: `Bearer ${key}` }
}

/** The problem of an error response, which may also come from a proxy between the page and the service. */
export function problemFrom(status: number, answer: unknown): Problem {
  const { code, title, detail, hint } = (
    typeof answer === 'object' && answer !== null ? answer : {}
  ) as Partial<Problem>
  return {
    status,
    code: code ?? 'unknown',
    title: title ?? `HTTP ${status}`,
    detail: detail ?? `the service responded with ${status}`,
    ...(hint === undefined ? {} : { hint }),
  }
}
