import { batch, computed, signal } from '@preact/signals'
import { sendRequest, RequestRefused } from '../api/request.js'
import type { LocksResponse } from '../api/types.js'
import { backOffMs } from '../model/back-off.js'
import { MomentEstimates } from '../model/moment-estimates.js'
import { arrange, type LocksSnapshot, prefixOf } from '../model/table-rows.js'
import { queriedMember, base, clusterPoller, switchMember } from './cluster.js'
import { failure, now, refused, updatedAt } from './health.js'
import { Poller } from './polling.js'
import { place, search } from './route.js'
import { apiKey, onKeyRejected, locked } from './settings.js'

/** The maximal number of holds, waiters and sessions in one response. */
export const PAGE_MAX = 1_000

const POLL_MS = 1_000
const HIDDEN_MS = 10_000
const REFUSED_MS = 10_000
const SPACING_MS = 150

export const snapshot = signal<LocksSnapshot | undefined>(undefined)

const estimates = new MomentEstimates()

const query = computed(() => {
  const { page, name } = place.value
  if (page === 'locks' && name !== '') return `&name=${encodeURIComponent(name)}`
  const prefix = page === 'locks' ? prefixOf(search.value) : ''
  return prefix === '' ? '' : `&prefix=${encodeURIComponent(prefix)}`
})

async function poll(): Promise<number> {
  if (locked.value !== undefined) return HIDDEN_MS
  const sent = query.value
  const key = apiKey.value
  try {
    const path = `/v1/locks?stale=true&limit=${PAGE_MAX}${sent}`
    const answer = await sendRequest<LocksResponse>({ base: base.value, key }, path)
    // The page changed during the request: the new page needs another query at once.
    if (sent !== query.value) return 0
    const at = performance.now()
    batch(() => {
      snapshot.value = arrange(answer, at, estimates)
      now.value = at
      updatedAt.value = at
      failure.value = undefined
      refused.value = undefined
    })
    return document.hidden ? HIDDEN_MS : POLL_MS
  } catch (error) {
    return error instanceof RequestRefused ? onRefused(error, key) : onNoResponse(error as Error)
  }
}

function onRefused({ problem }: RequestRefused, key: string): number {
  if (problem.status >= 500 || problem.status === 429) return onNoResponse(new Error(problem.detail))
  batch(() => {
    failure.value = undefined
    if (problem.status === 401) onKeyRejected(key, problem)
    else refused.value = problem
  })
  return REFUSED_MS
}

function onNoResponse({ message }: Error): number {
  const failures = (failure.value?.failures ?? 0) + 1
  const waitMs = backOffMs(failures)
  failure.value = { why: message, failures, nextAttempt: performance.now() + waitMs }
  switchMember()
  if (base.value !== '' && queriedMember.value?.isResponding === true) return 0
  clusterPoller.wake()
  return waitMs
}

export const locksPoller = new Poller(poll, SPACING_MS)

/** Polls immediately when the query or the queried member changes. */
export function startLocks(): void {
  query.subscribe(() => locksPoller.wake())
  base.subscribe(() => locksPoller.wake())
}
