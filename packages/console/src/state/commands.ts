import { signal } from '@preact/signals'
import { ask } from '../api/request.js'
import { leaderBase } from './cluster.js'
import { locksLoop } from './locks.js'
import { actor, apiKey } from './settings.js'

const COMMAND_TIMEOUT_MS = 15_000

/** Something that ends what belongs to others: it is asked for first, with a reason. */
export interface Intent {
  readonly title: string
  /** What it is about, such as the lock's name. */
  readonly subject: string
  readonly facts: readonly (readonly [what: string, value: string])[]
  readonly consequence: string
  readonly action: string
  readonly done: string
  readonly path: string
  readonly body: Readonly<Record<string, string>>
}

export const intent = signal<Intent | undefined>(undefined)
/** What was done last, in words. */
export const notice = signal('')

const NOTICE_MS = 8_000
let forgetting: ReturnType<typeof setTimeout> | undefined

export function tell(text: string): void {
  notice.value = text
  clearTimeout(forgetting)
  forgetting = setTimeout(() => (notice.value = ''), NOTICE_MS)
}

/** Does it, on the leader. Throws `Refusal` or `Silence`. */
export async function carryOut({ path, body, done }: Intent, reason: string): Promise<void> {
  const who = path === '/v1/steal' ? { actor: actor.value.trim() || 'console' } : {}
  await ask({ base: leaderBase.value, key: apiKey.value }, path, {
    body: { ...body, reason, ...who },
    timeoutMs: COMMAND_TIMEOUT_MS,
  })
  tell(done)
  locksLoop.wake()
}
