import { get } from './tls-fetch.js'
import type { ClientTls } from './service-client.js'

const READY_TIMEOUT_MS = 1500

/** Whether a member serves, as seen from here: `ready`, or what is the matter. */
export async function stateAt(url: string, tls: ClientTls): Promise<string> {
  try {
    const response = await get(new URL('/readyz', url), { signal: AbortSignal.timeout(READY_TIMEOUT_MS), tls })
    const { reasons } = (await response.json()) as { reasons: readonly string[] }
    return response.ok ? 'ready' : reasons.join(', ')
  } catch {
    return 'no answer'
  }
}
