import type { Problem } from './types.js'

/** The service answered, and refused. */
export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail)
  }
}

/** Nothing came back, or nothing that the service would say. */
export class Silence extends Error {}

export interface Asking {
  /** '' is the member that this page is from. */
  readonly base: string
  readonly key: string
}

const ANSWER_TIMEOUT_MS = 3_000

/** One request. Throws `Refusal` or `Silence`, nothing else. */
export async function ask<T>(
  { base, key }: Asking,
  path: string,
  options: { body?: unknown; timeoutMs?: number } = {},
): Promise<T> {
  const { body, timeoutMs = ANSWER_TIMEOUT_MS } = options
  const response = await answered(base + path, timeoutMs, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...credentials(key), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return response as T
}

async function answered(url: string, timeoutMs: number, init: RequestInit): Promise<unknown> {
  let response: Response
  let answer: unknown
  try {
    response = await fetch(url, { ...init, cache: 'no-store', signal: AbortSignal.timeout(timeoutMs) })
    answer = await response.json()
  } catch (error) {
    const late = error instanceof DOMException && error.name === 'TimeoutError'
    throw new Silence(late ? `no answer within ${timeoutMs / 1000} s` : 'no connection')
  }
  if (!response.ok) throw new Refusal(problemFrom(response.status, answer))
  return answer
}

export function credentials(key: string): Record<string, string> {
  return key === '' ? {} : { authorization: `Bearer ${key}` }
}

/** What a refusal says, also when something between the page and the service made it. */
export function problemFrom(status: number, answer: unknown): Problem {
  const { code, title, detail, hint } = (
    typeof answer === 'object' && answer !== null ? answer : {}
  ) as Partial<Problem>
  return {
    status,
    code: code ?? 'unknown',
    title: title ?? `HTTP ${status}`,
    detail: detail ?? `the service answered ${status}`,
    ...(hint === undefined ? {} : { hint }),
  }
}
