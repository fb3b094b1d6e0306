import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'
import type { ClientTls } from './service-client.js'

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly tls: ClientTls
}

/** Sends a GET request with client certificates, which Node's `fetch` does not support. */
export function get(url: URL, { headers = {}, signal, tls }: GetOptions): Promise<Response> {
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const request = open(url, { headers, ...tls, ...(signal === undefined ? {} : { signal }) })
    request.once('error', reject)
    request.once('response', (response) => {
      const fields = Object.entries(response.headers).flatMap(([name, value]) =>
        typeof value === 'string' ? [[name, value] as [string, string]] : [],
      )
      const body = Readable.toWeb(response) as ReadableStream<Uint8Array>
      resolve(new Response(body, { status: response.statusCode ?? 0, headers: fields }))
    })
    request.end()
  })
}
