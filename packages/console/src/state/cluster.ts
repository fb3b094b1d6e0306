import { computed, signal } from '@preact/signals'
import { sendRequest, RequestRefused } from '../api/request.js'
import type { ClusterResponse, Problem } from '../api/types.js'
import { afterPoll, leaderOf, type MemberRow, type PollResult } from '../model/members.js'
import { leaderlessSince } from './health.js'
import { Poller } from './polling.js'
import { place } from './route.js'
import { apiKey, onKeyRejected, locked } from './settings.js'

const VISIBLE_MS = 1_000
const BACKGROUND_MS = 3_000
const HIDDEN_MS = 15_000
const DENIED_MS = 15_000
const RESPONSE_TIMEOUT_MS = 1_500
const SPACING_MS = 250
const LEADERS_MAX = 50

export const members = signal<readonly MemberRow[]>([])
/** Why the cluster cannot be shown. */
export const clusterDenied = signal<Problem | undefined>(undefined)
/** Name of the member that served this page. */
export const ownName = signal('')
/** URL of the member from which the state is read; '' for the member that served this page. */
export const base = signal('')

export interface ObservedLeader {
  readonly term: number
  readonly name: string
  /** Date.now() when this page first observed it. */
  readonly at: number
}

/** The leaders that this page observed, newest first. */
export const leaders = signal<readonly ObservedLeader[]>([])

export const leader = computed(() => leaderOf(members.value))

/** The base URL for requests of this page to a member. */
export function baseOf(name: string, url: string): string {
  return name === ownName.value ? '' : url
}

/** The base URL for commands, which only the leader accepts. */
export const leaderBase = computed(() => {
  const known = leader.value
  return known === undefined ? '' : baseOf(known.member, known.url)
})

/** The member from which the state is read. */
export const queriedMember = computed(() => members.value.find(({ name, url }) => baseOf(name, url) === base.value))

/** Switches to another member that responds, preferably one that knows a leader; to that of the page if there is none. */
export function switchMember(): void {
  const others = members.value.filter(
    ({ name, url, isResponding }) => isResponding && url !== '' && baseOf(name, url) !== base.value,
  )
  const next = others.find(({ status }) => status?.leader !== '') ?? others[0]
  base.value = next === undefined ? '' : baseOf(next.name, next.url)
}

async function pollMember(name: string, from: string): Promise<PollResult> {
  const start = performance.now()
  try {
    const status = await sendRequest<ClusterResponse>({ base: from, key: apiKey.value }, '/v1/cluster', {
      timeoutMs: RESPONSE_TIMEOUT_MS,
    })
    if (from === '') ownName.value = status.member
    return { name: status.member, status, rttMs: performance.now() - start }
  } catch (error) {
    // Only an error response of the member that served the page decides whether the cluster is shown.
    if (error instanceof RequestRefused && from === '') throw error
    return { name, status: undefined, rttMs: performance.now() - start }
  }
}

async function poll(): Promise<number> {
  if (locked.value !== undefined) return HIDDEN_MS
  const key = apiKey.value
  const isFirst = members.value.length === 0
  // A member that has just started may not have announced its URL yet.
  const others = members.value.filter(({ name, url }) => name !== ownName.value && url !== '')
  const requests = [pollMember(ownName.value, ''), ...others.map(({ name, url }) => pollMember(name, url))]
  const results = await Promise.allSettled(requests)
  const denied = results.find((one) => one.status === 'rejected')
  if (denied?.reason instanceof RequestRefused) {
    const { problem } = denied.reason
    if (problem.status === 401) onKeyRejected(key, problem)
    else clusterDenied.value = problem
    return DENIED_MS
  }
  clusterDenied.value = undefined
  const before = leader.value
  members.value = afterPoll(
    members.value,
    results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
    performance.now(),
  )
  noteLeader(before)
  noteLeaderless()
  if (document.hidden) return HIDDEN_MS
  // The first response names the other members: they are polled at once, so that the page can switch without its member.
  if (isFirst && members.value.length > 1) return 0
  return place.value.page === 'cluster' ? VISIBLE_MS : BACKGROUND_MS
}

function noteLeader(before: ClusterResponse | undefined): void {
  const known = leader.value
  if (known === undefined || (known.member === before?.member && known.term === before.term)) return
  if (leaders.value[0]?.term === known.term) return
  leaders.value = [{ term: known.term, name: known.member, at: Date.now() }, ...leaders.value].slice(0, LEADERS_MAX)
}

function noteLeaderless(): void {
  const status = queriedMember.value?.isResponding === true ? queriedMember.value.status : undefined
  if (status === undefined || status.leader !== '') leaderlessSince.value = undefined
  else {
    leaderlessSince.value ??= performance.now()
    const better = members.value.some((row) => row.isResponding && row.status !== undefined && row.status.leader !== '')
    if (better) switchMember()
  }
}

export const clusterPoller = new Poller(poll, SPACING_MS)
