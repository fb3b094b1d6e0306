import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import {
  ERRORS,
  type ErrorCode,
  type ErrorDetails,
  errorOf,
  InvalidError,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'
import { apiKeyOf, type ServiceOptions, urlOf } from './service.js'

/** Bound on an answer's size; every answer of these commands is far smaller. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024

/** Failures to connect: nothing was sent, so the next member may be asked. */
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])

/**
 * One request to the service's HTTP interface, for handles that outlive this process. Several URLs are tried in turn
 * until one takes the connection.
 */
export async function callService(options: ServiceOptions, path: string, body: unknown): Promise<unknown> {
  const urls = urlOf(options)
    .split(',')
    .map((url) => url.trim())
  let last: unknown
  for (const url of urls) {
    if (!/^https?:\/\//.test(url)) {
      throw new InvalidError(`this command needs a service, not ${url}`, {
        hint: 'start one with: leasehold serve, and name it with --url http://HOST:PORT',
      })
    }
    try {
      return await post(new URL(path, url), apiKeyOf(options), body)
    } catch (error) {
      if (!NOT_SENT.has((error as NodeJS.ErrnoException).code ?? '')) throw error
      last = error
    }
  }
  throw new UnavailableError(`cannot reach ${urls.join(', ')}`, {
    cause: last,
  })
}

function post(url: URL, apiKey: string | undefined, body: unknown): Promise<unknown> {
  const text = JSON.stringify(body)
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const request = send(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (NOT_SENT.has(error.code ?? '')) reject(error)
      else reject(new UnknownOutcomeError(`the answer of ${url.origin} is lost: ${error.message}`, { cause: error }))
    })
    request.on('response', (response) => readAnswer(response).then(resolve, reject))
    request.end(text)
  })
}

async function readAnswer(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new UnavailableError(`an answer of more than ${ANSWER_BYTES_MAX} bytes`)
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
  if (typeof code === 'string' && code in ERRORS) {
    const words = [message, detail].find((value) => typeof value === 'string') ?? code
    const details: ErrorDetails = { hint: text(fields.hint), reason: text(fields.reason) as ErrorDetails['reason'] }
    return errorOf(code as ErrorCode, String(words), details)
  }
  return new UnavailableError(`the service answered ${status}: ${body.slice(0, 200)}`, {
    hint: 'is this the URL of a Leasehold service?',
  })
}
