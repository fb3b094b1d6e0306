import { checkHistory, modelNamed, type Operation } from '@leasehold/lab'
import type { Judge, Recorded } from '../work/journal.js'

const BUDGET_MS = 60_000
/** In less time no session of the clients can have been given up: well below their TTL less its margin. */
const ABANDONED_US = 1_500_000

export interface Judged {
  readonly judge: Judge
  readonly operations: number
  /** Undefined: linearizable. */
  readonly problem: string | undefined
}

/** Lets the checker judge what the clients saw, model by model. */
export function judgeHistories({ operations }: Recorded): Judged[] {
  return [...operations].map(([judge, all]) => {
    const history = withEnds(judge, [...all, ...unseenGrants(judge, all)])
    const result = checkHistory(modelNamed(judge, {}), history, { budgetMs: BUDGET_MS, now: () => performance.now() })
    const problem =
      result.verdict === 'linearizable'
        ? undefined
        : `${judge}: ${result.verdict}: ${result.explanation?.text ?? JSON.stringify(result.undecided)}`
    return { judge, operations: result.operations, problem }
  })
}

/**
 * A client that was stopped while it waited may have been granted the lock in a session that it then gave up, and asked
 * again in a new one: the first grant was real until that session ended, and nobody saw it. Only a shared one leaves a
 * trace: its generation, and so its token, lives on.
 */
function unseenGrants(judge: Judge, all: readonly Operation[]): readonly Operation[] {
  if (judge !== 'rw') return []
  return all
    .filter(
      ({ op, mode, invokedAt, returnedAt = 0 }) =>
        op === 'acquire' && mode === 'shared' && returnedAt - invokedAt > ABANDONED_US,
    )
    .map(({ token: _, ...asked }) => ({
      ...asked,
      outcome: 'unknown',
      owner: `${asked.owner ?? asked.process} unseen`,
    }))
}

/** A hold whose end nobody saw (its process was killed, or never heard of its grant) may end at any time after its grant. */
function withEnds(judge: Judge, all: readonly Operation[]): readonly Operation[] {
  if (judge === 'register') return all
  const ended = new Set(all.filter(({ op }) => op === 'release').map(({ owner }) => owner))
  const ends = all
    .filter(({ op, outcome, owner }) => op === 'acquire' && outcome !== 'fail' && !ended.has(owner))
    .map(({ returnedAt, ...grant }): Operation => {
      const invokedAt = grant.outcome === 'ok' ? (returnedAt as number) : grant.invokedAt
      return { ...grant, op: 'release', outcome: 'unknown', invokedAt }
    })
  return [...all, ...ends]
}

/**
 * Over all clients, without a search: exclusive tokens of a lock are never given twice, and a grant that was asked for after
 * another was known has a greater one.
 */
export function judgeTokens({ operations }: Recorded): string[] {
  const problems: string[] = []
  for (const judge of ['fenced-mutex', 'permits'] as const) {
    const all = (operations.get(judge) ?? []).filter(({ op, outcome }) => op === 'acquire' && outcome === 'ok')
    for (const lock of new Set(all.map(({ key }) => key))) {
      const grants = all.filter(({ key }) => key === lock)
      const tokens = new Set<bigint>()
      for (const { token } of grants) {
        if (tokens.has(token as bigint)) problems.push(`${lock}: token ${token} was given twice`)
        tokens.add(token as bigint)
      }
      problems.push(...disorder(lock, grants))
    }
  }
  return problems
}

function disorder(lock: string, grants: readonly Operation[]): string[] {
  const returned = grants.toSorted((a, b) => (a.returnedAt as number) - (b.returnedAt as number))
  const invoked = grants.toSorted((a, b) => a.invokedAt - b.invokedAt)
  const problems: string[] = []
  let known = 0n
  let next = 0
  for (const grant of invoked) {
    for (
      let other = returned[next];
      other !== undefined && (other.returnedAt as number) < grant.invokedAt;
      other = returned[next]
    ) {
      if ((other.token as bigint) > known) known = other.token as bigint
      next++
    }
    if ((grant.token as bigint) <= known) problems.push(`${lock}: token ${grant.token} was given after ${known}`)
  }
  return problems
}
