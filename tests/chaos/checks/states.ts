import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterMember } from '../member.js'

const LIMIT_MS = 30_000
const AGAIN_MS = 50
const ASK_TIMEOUT_MS = 5_000
const PAGE = 1_000

/**
 * Compares what the members have applied, at the same index. Their clocks move the index every second, so that it may take
 * some tries until all answer from the same one. Resolves with a problem, or undefined when they agree.
 */
export async function compareStates(members: readonly ClusterMember[]): Promise<string | undefined> {
  const seen = new Map<string, Map<string, string>>()
  const end = performance.now() + LIMIT_MS
  let last = ''
  while (performance.now() < end) {
    const answers = await Promise.all(members.map(stateOf))
    for (const [i, answer] of answers.entries()) {
      const { name } = members[i] as ClusterMember
      if (answer === undefined) {
        last = `${name} does not answer`
        continue
      }
      const at = seen.get(answer.at) ?? new Map<string, string>()
      at.set(name, answer.text)
      seen.set(answer.at, at)
      if (new Set(at.values()).size > 1) {
        return `at ${answer.at} the states differ:\n${[...at].map(([who, text]) => `  ${who}: ${text}`).join('\n')}`
      }
      if (at.size === members.length) return undefined
    }
    if (answers.every((answer) => answer !== undefined)) last = `they are at ${answers.map(({ at }) => at).join(', ')}`
    await sleep(AGAIN_MS)
  }
  return `the members did not come to the same index in ${LIMIT_MS} ms: ${last}`
}

/** Everything that a member shows of its state, as one text, and where it stands. */
async function stateOf(member: ClusterMember): Promise<{ at: string; text: string } | undefined> {
  try {
    const url = `${member.url}/v1/locks?stale=true&limit=${PAGE}`
    const response = await fetch(url, { signal: AbortSignal.timeout(ASK_TIMEOUT_MS) })
    const body = (await response.json()) as { at: string }
    return response.ok ? { at: body.at, text: JSON.stringify(body) } : undefined
  } catch {
    return undefined
  }
}
