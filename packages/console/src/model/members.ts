import type { ClusterResponse, Role } from '../api/types.js'

/** Length of the history in the charts. */
export const SAMPLES_MAX = 120

export interface Sample {
  readonly at: number
  readonly applied: number
  /** Entries behind the highest commit index of any member; undefined when the member did not respond. */
  readonly lag: number | undefined
  readonly rttMs: number
}

export interface MemberRow {
  readonly name: string
  readonly url: string
  readonly kind: 'voter' | 'learner'
  /** Its latest response. */
  readonly status: ClusterResponse | undefined
  /** Whether it responded to the latest request. */
  readonly isResponding: boolean
  /** When it last responded, on the monotonic clock. */
  readonly lastSeen: number | undefined
  readonly samples: readonly Sample[]
}

/** The result of one request to a member. */
export interface PollResult {
  readonly name: string
  readonly status: ClusterResponse | undefined
  readonly rttMs: number
}

/** Updates the members with the results of a poll at `now`. Members that the cluster no longer has are removed. */
export function afterPoll(rows: readonly MemberRow[], results: readonly PollResult[], now: number): MemberRow[] {
  const responses = results.flatMap(({ status }) => (status === undefined ? [] : [status]))
  const newest = responses.reduce<ClusterResponse | undefined>(
    (best, one) => (best === undefined || one.appliedIndex > best.appliedIndex ? one : best),
    undefined,
  )
  if (newest === undefined) return rows.map((row) => withSample({ ...row, isResponding: false }, now, 0, 0))
  const commit = Math.max(...responses.map((one) => one.commitIndex))
  const listed = newest.members ?? [{ name: newest.member, url: newest.url, role: 'voter' as const }]
  return listed.map(({ name, url, role }) => {
    const known = rows.find((row) => row.name === name)
    const result = results.find((one) => one.name === name)
    const status = result?.status ?? known?.status
    const isResponding = result?.status !== undefined
    const row = {
      name,
      url,
      kind: role,
      status,
      isResponding,
      lastSeen: isResponding ? now : known?.lastSeen,
      samples: known?.samples ?? [],
    }
    return withSample(row, now, commit, result?.rttMs ?? 0)
  })
}

function withSample(row: MemberRow, at: number, commit: number, rttMs: number): MemberRow {
  const applied = row.status?.appliedIndex ?? 0
  const lag = row.isResponding ? Math.max(0, commit - applied) : undefined
  return { ...row, samples: [...row.samples, { at, applied, lag, rttMs }].slice(-SAMPLES_MAX) }
}

/** The leader of the highest term among the members that respond. */
export function leaderOf(rows: readonly MemberRow[]): ClusterResponse | undefined {
  let best: ClusterResponse | undefined
  for (const { status, isResponding } of rows) {
    if (isResponding && status?.role === 'leader' && status.term >= (best?.term ?? 0)) best = status
  }
  return best
}

/** Entries applied per second between samples; undefined where the member did not respond. */
export function rates(samples: readonly Sample[]): (number | undefined)[] {
  return samples.slice(1).map((sample, i) => {
    const before = samples[i] as Sample
    if (sample.lag === undefined || before.lag === undefined || sample.at <= before.at) return undefined
    return Math.max(0, ((sample.applied - before.applied) * 1000) / (sample.at - before.at))
  })
}

/** The role to show; that of a member that does not respond is unknown. */
export function roleText(row: MemberRow): Role | 'no answer' {
  return row.isResponding && row.status !== undefined ? row.status.role : 'no answer'
}
