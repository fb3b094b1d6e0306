import type { ClusterAnswer, Role } from '../api/types.js'

/** Seconds of history that the charts show. */
export const SAMPLES_MAX = 120

export interface Sample {
  readonly at: number
  readonly applied: number
  /** Entries behind the highest commit that anybody told; undefined when the member did not answer. */
  readonly lag: number | undefined
  readonly rttMs: number
}

export interface MemberRow {
  readonly name: string
  readonly url: string
  readonly kind: 'voter' | 'learner'
  /** What it said last. */
  readonly said: ClusterAnswer | undefined
  /** It answered the last time it was asked. */
  readonly answers: boolean
  /** When it answered last, of the monotonic clock. */
  readonly heard: number | undefined
  readonly samples: readonly Sample[]
}

export interface Told {
  readonly name: string
  readonly answer: ClusterAnswer | undefined
  readonly rttMs: number
}

/** The members, after all were asked once more at `now`. Members that the cluster no longer has are left out. */
export function afterRound(rows: readonly MemberRow[], told: readonly Told[], now: number): MemberRow[] {
  const answers = told.flatMap(({ answer }) => (answer === undefined ? [] : [answer]))
  const newest = answers.reduce<ClusterAnswer | undefined>(
    (best, one) => (best === undefined || one.appliedIndex > best.appliedIndex ? one : best),
    undefined,
  )
  if (newest === undefined) return rows.map((row) => withSample({ ...row, answers: false }, now, 0, 0))
  const commit = Math.max(...answers.map((one) => one.commitIndex))
  const listed = newest.members ?? [{ name: newest.member, url: newest.url, role: 'voter' as const }]
  return listed.map(({ name, url, role }) => {
    const known = rows.find((row) => row.name === name)
    const heard = told.find((one) => one.name === name)
    const said = heard?.answer ?? known?.said
    const isHere = heard?.answer !== undefined
    const row = {
      name,
      url,
      kind: role,
      said,
      answers: isHere,
      heard: isHere ? now : known?.heard,
      samples: known?.samples ?? [],
    }
    return withSample(row, now, commit, heard?.rttMs ?? 0)
  })
}

function withSample(row: MemberRow, at: number, commit: number, rttMs: number): MemberRow {
  const applied = row.said?.appliedIndex ?? 0
  const lag = row.answers ? Math.max(0, commit - applied) : undefined
  return { ...row, samples: [...row.samples, { at, applied, lag, rttMs }].slice(-SAMPLES_MAX) }
}

/** Who leads: the leader of the highest term among those that answer. */
export function leaderOf(rows: readonly MemberRow[]): ClusterAnswer | undefined {
  let best: ClusterAnswer | undefined
  for (const { said, answers } of rows) {
    if (answers && said?.role === 'leader' && said.term >= (best?.term ?? 0)) best = said
  }
  return best
}

/** Entries applied per second between samples; undefined where the member did not answer. */
export function rates(samples: readonly Sample[]): (number | undefined)[] {
  return samples.slice(1).map((sample, i) => {
    const before = samples[i] as Sample
    if (sample.lag === undefined || before.lag === undefined || sample.at <= before.at) return undefined
    return Math.max(0, ((sample.applied - before.applied) * 1000) / (sample.at - before.at))
  })
}

/** The role to show; nobody knows that of a member that does not answer. */
export function roleText(row: MemberRow): Role | 'no answer' {
  return row.answers && row.said !== undefined ? row.said.role : 'no answer'
}
