import type { Recorded } from '../work/journal.js'
import { type Effect, Resource } from '../work/resource.js'

export interface ResourceJudgement {
  readonly effects: number
  readonly writes: number
  readonly refused: number
  readonly problems: string[]
}

/** Judges what the guard let through: no effect of an earlier hold after one of a later, no lost and no forgotten write. */
export function judgeResource(file: string, { notes }: Recorded): ResourceJudgement {
  const resource = new Resource(file)
  try {
    const effects = resource.effects()
    const problems = judgeEffects(effects)
    const counts = new Map<string, number>()
    const writes = effects.filter(({ kind }) => kind === 'write')
    for (const { lock } of writes) counts.set(lock, (counts.get(lock) ?? 0) + 1)
    for (const [lock, value] of resource.values()) {
      if (counts.get(lock) !== value) problems.push(`${lock}: counts ${value} after ${counts.get(lock)} writes`)
    }
    const known = new Set(writes.map(({ lock, token, after }) => `${lock} ${token} ${after}`))
    let refused = 0
    for (const note of notes) {
      if (note.note === 'refused') refused++
      if (note.note === 'written' && !known.has(`${note.lock} ${note.token} ${note.after}`)) {
        problems.push(
          `${note.lock}: the write of ${note.after} with token ${note.token} was acknowledged and is not there`,
        )
      }
    }
    return { effects: effects.length, writes: writes.length, refused, problems }
  } finally {
    resource.close()
  }
}

/** The order of effects, lock by lock. */
export function judgeEffects(effects: readonly Effect[]): string[] {
  const problems: string[] = []
  const newest = new Map<string, { token: bigint; value: number }>()
  for (const { seq, lock, token, kind, before, after } of effects) {
    const last = newest.get(lock) ?? { token: 0n, value: 0 }
    if (token < last.token) problems.push(`effect ${seq} of ${lock}: token ${token} was accepted after ${last.token}`)
    if (before !== last.value)
      problems.push(`effect ${seq} of ${lock}: a ${kind} built on ${before}, where ${last.value} was written`)
    newest.set(lock, { token: token > last.token ? token : last.token, value: kind === 'write' ? after : last.value })
  }
  return problems
}
