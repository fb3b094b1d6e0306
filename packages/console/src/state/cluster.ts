import { computed, signal } from '@preact/signals'
import { ask, Refusal } from '../api/request.js'
import type { ClusterAnswer, Problem } from '../api/types.js'
import { afterRound, leaderOf, type MemberRow, type Told } from '../model/members.js'
import { leaderlessSince } from './health.js'
import { Loop } from './polling.js'
import { place } from './route.js'
import { apiKey, keyRefused, locked } from './settings.js'

const WATCHED_MS = 1_000
const ASIDE_MS = 3_000
const HIDDEN_MS = 15_000
const DENIED_MS = 15_000
const ANSWER_TIMEOUT_MS = 1_500
const SPACING_MS = 250
const LEADERS_MAX = 50

export const members = signal<readonly MemberRow[]>([])
/** Why the cluster is not shown. */
export const clusterDenied = signal<Problem | undefined>(undefined)
/** Name of the member that this page is from. */
export const ownName = signal('')
/** Where the state is asked for; '' is the member that this page is from. */
export const base = signal('')

export interface Led {
  readonly term: number
  readonly name: string
  /** Date.now() when this page saw it first. */
  readonly at: number
}

/** Who led, as this page has seen it; newest first. */
export const leaders = signal<readonly Led[]>([])

export const leader = computed(() => leaderOf(members.value))

/** How this page reaches a member. */
export function baseOf(name: string, url: string): string {
  return name === ownName.value ? '' : url
}

/** Where commands go: only the leader takes them. */
export const leaderBase = computed(() => {
  const known = leader.value
  return known === undefined ? '' : baseOf(known.member, known.url)
})

/** The member that the state is asked from. */
export const asked = computed(() => members.value.find(({ name, url }) => baseOf(name, url) === base.value))

/** Takes another member that answers, best one that knows a leader; the page's own when there is none. */
export function turnElsewhere(): void {
  const others = members.value.filter(
    ({ name, url, answers }) => answers && url !== '' && baseOf(name, url) !== base.value,
  )
  const next = others.find(({ said }) => said?.leader !== '') ?? others[0]
  base.value = next === undefined ? '' : baseOf(next.name, next.url)
}

async function standing(name: string, from: string): Promise<Told> {
  const start = performance.now()
  try {
    const answer = await ask<ClusterAnswer>({ base: from, key: apiKey.value }, '/v1/cluster', {
      timeoutMs: ANSWER_TIMEOUT_MS,
    })
    if (from === '') ownName.value = answer.member
    return { name: answer.member, answer, rttMs: performance.now() - start }
  } catch (error) {
    // Another member's refusal is its own matter; that of the page's member decides what may be shown.
    if (error instanceof Refusal && from === '') throw error
    return { name, answer: undefined, rttMs: performance.now() - start }
  }
}

async function turn(): Promise<number> {
  if (locked.value !== undefined) return HIDDEN_MS
  const key = apiKey.value
  const isFirst = members.value.length === 0
  // A member that has just begun may not have told its address yet.
  const others = members.value.filter(({ name, url }) => name !== ownName.value && url !== '')
  const questions = [standing(ownName.value, ''), ...others.map(({ name, url }) => standing(name, url))]
  const told = await Promise.allSettled(questions)
  const denied = told.find((one) => one.status === 'rejected')
  if (denied?.reason instanceof Refusal) {
    const { problem } = denied.reason
    if (problem.status === 401) keyRefused(key, problem)
    else clusterDenied.value = problem
    return DENIED_MS
  }
  clusterDenied.value = undefined
  const before = leader.value
  members.value = afterRound(
    members.value,
    told.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
    performance.now(),
  )
  noteLeader(before)
  noteLeaderless()
  if (document.hidden) return HIDDEN_MS
  // The first answer names the others: they are asked at once, so that the page knows where to go without its member.
  if (isFirst && members.value.length > 1) return 0
  return place.value.page === 'cluster' ? WATCHED_MS : ASIDE_MS
}

function noteLeader(before: ClusterAnswer | undefined): void {
  const known = leader.value
  if (known === undefined || (known.member === before?.member && known.term === before.term)) return
  if (leaders.value[0]?.term === known.term) return
  leaders.value = [{ term: known.term, name: known.member, at: Date.now() }, ...leaders.value].slice(0, LEADERS_MAX)
}

function noteLeaderless(): void {
  const said = asked.value?.answers === true ? asked.value.said : undefined
  if (said === undefined || said.leader !== '') leaderlessSince.value = undefined
  else {
    leaderlessSince.value ??= performance.now()
    const better = members.value.some((row) => row.answers && row.said !== undefined && row.said.leader !== '')
    if (better) turnElsewhere()
  }
}

export const clusterLoop = new Loop(turn, SPACING_MS)
