import { signal } from '@preact/signals'
import { sendRequest } from '../api/request.js'
import { leaderBase } from './cluster.js'
import { locksPoller } from './locks.js'
import { actor, apiKey } from './settings.js'

const COMMAND_TIMEOUT_MS = 15_000

/** A command that ends a hold or session of a client: the console asks for confirmation and a reason first. */
export interface Intent {
  readonly title: string
  /** Its subject, such as the name of the lock. */
  readonly subject: string
  readonly facts: readonly (readonly [what: string, value: string])[]
  readonly consequence: string
  readonly action: string
  readonly done: string
  readonly path: string
  readonly body: Readonly<Record<string, string>>
}

export const intent = signal<Intent | undefined>(undefined)
/** The result of the last command. */
export const notice = signal('')

const NOTICE_MS = 8_000
let hiding: ReturnType<typeof setTimeout> | undefined

export function showNotice(text: string): void {
  notice.value = text
  clearTimeout(hiding)
  hiding = setTimeout(() => (notice.value = ''), NOTICE_MS)
}

/** Executes the command on the leader. @throws RequestRefused, NoResponse */
export async function executeIntent({ path, body, done }: Intent, reason: string): Promise<void> {
  const attribution = path === '/v1/steal' ? { actor: actor.value.trim() || 'console' } : {}
  await sendRequest({ base: leaderBase.value, key: apiKey.value }, path, {
    body: { ...body, reason, ...attribution },
    timeoutMs: COMMAND_TIMEOUT_MS,
  })
  showNotice(done)
  locksPoller.wake()
}
