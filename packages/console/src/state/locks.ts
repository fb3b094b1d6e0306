import { batch, computed, signal } from '@preact/signals'
import { ask, Refusal } from '../api/request.js'
import type { LocksAnswer } from '../api/types.js'
import { backOffMs } from '../model/back-off.js'
import { Estimates } from '../model/estimates.js'
import { arrange, type Picture, prefixOf } from '../model/table-rows.js'
import { asked, base, clusterLoop, turnElsewhere } from './cluster.js'
import { failure, now, refused, toldAt } from './health.js'
import { Loop } from './polling.js'
import { place, search } from './route.js'
import { apiKey, keyRefused, locked } from './settings.js'

/** How many holds, waiters and sessions one answer has at most. */
export const PAGE_MAX = 1_000

const POLL_MS = 1_000
const HIDDEN_MS = 10_000
const REFUSED_MS = 10_000
const SPACING_MS = 150

export const picture = signal<Picture | undefined>(undefined)

const estimates = new Estimates()

const question = computed(() => {
  const { page, name } = place.value
  if (page === 'locks' && name !== '') return `&name=${encodeURIComponent(name)}`
  const prefix = page === 'locks' ? prefixOf(search.value) : ''
  return prefix === '' ? '' : `&prefix=${encodeURIComponent(prefix)}`
})

async function turn(): Promise<number> {
  if (locked.value !== undefined) return HIDDEN_MS
  const asking = question.value
  const key = apiKey.value
  try {
    const path = `/v1/locks?stale=true&limit=${PAGE_MAX}${asking}`
    const answer = await ask<LocksAnswer>({ base: base.value, key }, path)
    // Meanwhile somebody has gone to another page: its question is asked at once.
    if (asking !== question.value) return 0
    const at = performance.now()
    batch(() => {
      picture.value = arrange(answer, at, estimates)
      now.value = at
      toldAt.value = at
      failure.value = undefined
      refused.value = undefined
    })
    return document.hidden ? HIDDEN_MS : POLL_MS
  } catch (error) {
    return error instanceof Refusal ? onRefusal(error, key) : onSilence(error as Error)
  }
}

function onRefusal({ problem }: Refusal, key: string): number {
  if (problem.status >= 500 || problem.status === 429) return onSilence(new Error(problem.detail))
  batch(() => {
    failure.value = undefined
    if (problem.status === 401) keyRefused(key, problem)
    else refused.value = problem
  })
  return REFUSED_MS
}

function onSilence({ message }: Error): number {
  const failures = (failure.value?.failures ?? 0) + 1
  const waitMs = backOffMs(failures)
  failure.value = { why: message, failures, nextTry: performance.now() + waitMs }
  turnElsewhere()
  if (base.value !== '' && asked.value?.answers === true) return 0
  clusterLoop.wake()
  return waitMs
}

export const locksLoop = new Loop(turn, SPACING_MS)

/** Something has changed: another question, another key, an event. */
export function wakeOnChanges(): void {
  question.subscribe(() => locksLoop.wake())
  base.subscribe(() => locksLoop.wake())
}
