import type { Locks } from 'leasehold'
import type { Recorded } from '../work/journal.js'

const PAGE = 500

export interface KeptJudgement {
  readonly kept: number
  readonly given: number
  readonly problems: string[]
}

/** Persistent holds after the last operation: the acknowledged ones are there, the released ones are not. */
export async function judgeKept(locks: Locks, { notes }: Recorded): Promise<KeptJudgement> {
  const there = await heldNow(locks)
  const problems: string[] = []
  const giving = new Set(notes.flatMap((note) => (note.note === 'giving' ? note.id : [])))
  let kept = 0
  let given = 0
  for (const note of notes) {
    if (note.note === 'kept') {
      kept++
      if (giving.has(note.id) || there.has(note.id)) continue
      problems.push(`${note.lock}: hold ${note.id} was acknowledged and is gone`)
    } else if (note.note === 'given') {
      given++
      if (there.has(note.id)) problems.push(`${note.lock}: hold ${note.id} was released and is still there`)
    }
  }
  return { kept, given, problems }
}

/**
 * Holds that nothing may end while their processes live.
 * @param alive the client processes that run, and have not begun to end
 */
export async function judgeLong(
  locks: Locks,
  { notes }: Recorded,
  alive: readonly string[],
): Promise<{ long: number; problems: string[] }> {
  const there = await heldNow(locks)
  const problems: string[] = []
  let long = 0
  for (const note of notes) {
    if (note.note === 'long-lost') problems.push(`${note.lock}: hold ${note.id} was lost: ${note.why}`)
    if (note.note !== 'long' || !alive.includes(note.process)) continue
    long++
    if (!there.has(note.id)) problems.push(`${note.lock}: ${note.process} believes in hold ${note.id}, which is gone`)
  }
  return { long, problems }
}

/** The ids of all holds of the service. */
async function heldNow(locks: Locks): Promise<Set<string>> {
  const ids = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await locks.query({ limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
    for (const { id } of page.held) ids.add(String(id))
    cursor = page.next
  } while (cursor !== undefined)
  return ids
}
