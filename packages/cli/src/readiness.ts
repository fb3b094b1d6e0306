import { get } from './tls-fetch.js'
import type { ClientTls } from './service-client.js'

const READY_TIMEOUT_MS = 1500

/** Returns `ready` if the member at `url` serves requests, or the reason why not. */
export async function readinessOf(url: string, tls: ClientTls): Promise<string> {
  try {
    const response = await get(new URL('/readyz', url), { signal: AbortSignal.timeout(READY_TIMEOUT_MS), tls })
    const { reasons } = (await response.json()) as { reasons: readonly string[] }
    return response.ok ? 'ready' : reasons.join(', ')
  } catch {
    return 'no response'
  }
}
