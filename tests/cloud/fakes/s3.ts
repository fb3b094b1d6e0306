import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What happens to the next PUT. */
export type S3Fault = 'conflict 409' | 'applied, then 500' | 'applied, then cut' | 'cut' | 'deleted meanwhile'

/**
 * S3's wire as far as a guard uses it: GET, PUT and DELETE of objects, path style, with the documented conditions: `If-Match`
 * against the ETag (the MD5 of the body), `If-None-Match: *`, 412, 409, 404, and a bucket policy that refuses writes without
 * a condition. It checks no signatures.
 */
export class FakeS3 {
  readonly objects = new Map<string, { body: Buffer; etag: string }>()
  readonly requests: string[] = []
  readonly faults: S3Fault[] = []
  /** As emulators do that take the headers and ignore them. */
  ignoresConditions = false
  /** As a bucket policy does. */
  refusesUnconditional = false
  bucket = 'bucket'
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://fake').pathname).slice(1)
    const slash = path.indexOf('/')
    const key = path.slice(slash + 1)
    this.requests.push(`${request.method} ${key}`)
    if (path.slice(0, slash) !== this.bucket) return refuse(response, 404, 'NoSuchBucket')
    if (request.method === 'GET') return this.#get(key, response)
    if (request.method === 'DELETE') {
      this.objects.delete(key)
      return void response.writeHead(204).end()
    }
    if (request.method !== 'PUT') return refuse(response, 405, 'MethodNotAllowed')
    this.#put(key, Buffer.concat(chunks), request, response)
  }

  #get(key: string, response: ServerResponse): void {
    const found = this.objects.get(key)
    if (found === undefined) return refuse(response, 404, 'NoSuchKey')
    response.writeHead(200, { etag: found.etag, 'content-length': found.body.length }).end(found.body)
  }

  #put(key: string, body: Buffer, request: IncomingMessage, response: ServerResponse): void {
    const fault = this.faults.shift()
    if (fault === 'cut') return void request.socket.destroy()
    if (fault === 'conflict 409') return refuse(response, 409, 'ConditionalRequestConflict')
    if (fault === 'deleted meanwhile') this.objects.delete(key)
    const ifMatch = request.headers['if-match']
    const ifNoneMatch = request.headers['if-none-match']
    if (this.refusesUnconditional && ifMatch === undefined && ifNoneMatch === undefined) {
      return refuse(response, 403, 'AccessDenied')
    }
    if (ifNoneMatch !== undefined && ifNoneMatch !== '*') return refuse(response, 501, 'NotImplemented')
    if (!this.ignoresConditions) {
      const found = this.objects.get(key)
      if (ifNoneMatch === '*' && found !== undefined) return refuse(response, 412, 'PreconditionFailed')
      if (ifMatch !== undefined && found === undefined) return refuse(response, 404, 'NoSuchKey')
      if (ifMatch !== undefined && found?.etag !== ifMatch) return refuse(response, 412, 'PreconditionFailed')
    }
    const etag = `"${createHash('md5').update(body).digest('hex')}"`
    this.objects.set(key, { body, etag })
    if (fault === 'applied, then 500') return refuse(response, 500, 'InternalError')
    if (fault === 'applied, then cut') return void request.socket.destroy()
    response.writeHead(200, { etag }).end()
  }
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${code}</Message></Error>`
  response.writeHead(status, { 'content-type': 'application/xml' }).end(body)
}
