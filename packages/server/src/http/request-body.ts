import { InvalidError } from '@leasehold/core'
import { BODY_BYTES_MAX } from '../limits.js'
import { HttpError } from './problems.js'
import type { HttpContext } from './route.js'

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

export function isJson(context: HttpContext): boolean {
  const type = context.req.header('content-type') ?? ''
  return type.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

/** Reads the whole body. @throws HttpError for more than {@link BODY_BYTES_MAX} bytes */
export async function readBody(context: HttpContext): Promise<Uint8Array> {
  const announced = Number(context.req.header('content-length') ?? 0)
  if (announced > BODY_BYTES_MAX) throw tooLarge()
  const body = context.req.raw.body
  if (body === null) return new Uint8Array(0)
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > BODY_BYTES_MAX) throw tooLarge()
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

/** Reads the body and parses it as JSON. @throws HttpError, InvalidError */
export async function readJson(context: HttpContext): Promise<unknown> {
  if (!isJson(context)) {
    throw new HttpError(
      415,
      'The content type is wrong',
      'this request needs a JSON body',
      "send it with -H 'content-type: application/json'",
      {
        accept: 'application/json',
      },
    )
  }
  const bytes = await readBody(context)
  let text: string
  try {
    text = strictUtf8.decode(bytes)
  } catch {
    throw new InvalidError('the body is not UTF-8')
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new InvalidError('the body is not JSON')
  }
}

function tooLarge(): HttpError {
  const detail = `a body has at most ${BODY_BYTES_MAX} bytes`
  return new HttpError(413, 'The body is too large', detail, undefined, { connection: 'close' })
}

/**
 * Parses the query string. Invalid percent-encoding and repeated keys are rejected, not repaired: a name that changes in
 * transit names another lock.
 * @throws InvalidError
 */
export function readQuery(url: string): Record<string, string> {
  const start = url.indexOf('?')
  const query = start < 0 ? '' : (url.slice(start + 1).split('#', 1)[0] as string)
  const values: Record<string, string> = Object.create(null) as Record<string, string>
  for (const part of query === '' ? [] : query.split('&')) {
    const equals = part.indexOf('=')
    const key = decode(equals < 0 ? part : part.slice(0, equals))
    if (key in values) throw new InvalidError(`the query contains ${JSON.stringify(key.slice(0, 40))} twice`)
    values[key] = equals < 0 ? '' : decode(part.slice(equals + 1))
  }
  return { ...values }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new InvalidError('the query is not percent-encoded UTF-8', {
      hint: "curl -G --data-urlencode 'name=…' encodes it",
    })
  }
}
