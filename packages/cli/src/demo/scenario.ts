import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Children, Worker } from './processes.js'
import { createRecord, readRecord } from './record.js'
import type { Actor, Half, DemoEvent, TimedEvent, Report, StorePlace, WorkerTask } from './model.js'

export const LEASE_MS = 1_000
export const BEFORE = 100
const AMOUNT_A = 30
const AMOUNT_B = 50
/** A is stopped at least this much longer than its lease. */
const EXTRA_PAUSE_MS = 300
const LEAD_IN_MS = 50
const LOCK = 'billing/invoice-42'

export interface Stage {
  readonly children: Children
  readonly folder: string
  readonly url: string
  /** Returns what is left of the time limit of the demo, in ms. Bounds every wait. */
  remaining(): number
}

/** Runs the scenario once: A is stopped between the check of its lease and its write; meanwhile, B acquires the lock and writes. */
export async function runHalf(stage: Stage, guarded: boolean, place: StorePlace): Promise<Half> {
  await createRecord(place, BEFORE)
  const events: TimedEvent[] = []
  const start = performance.now()
  const note = (actor: Actor, what: DemoEvent) => events.push({ atMs: performance.now() - start, actor, what })
  const cast = (actor: 'A' | 'B', { gate, begin }: Pick<WorkerTask, 'gate' | 'begin'>) => {
    const amount = actor === 'A' ? AMOUNT_A : AMOUNT_B
    const lock = guarded ? `${LOCK}-guarded` : LOCK
    const task: WorkerTask = {
      actor,
      url: stage.url,
      lock,
      ttlMs: LEASE_MS,
      amount,
      guarded,
      store: place,
      gate,
      begin,
    }
    return new Worker(stage.children, task, (report) => report.kind === 'ready' || note(actor, report))
  }

  const file = (name: string) => join(stage.folder, guarded ? `${name}-guarded` : name)
  const gate = file('go')
  const begin = file('begin')
  const b = cast('B', { gate: undefined, begin })
  await b.report(['ready'], stage.remaining())
  note('A', { kind: 'started' })
  const a = cast('A', { gate, begin: undefined })
  const heldA = await a.report(['held'], stage.remaining())
  await a.report(['sending'], stage.remaining())
  a.signal('SIGSTOP')
  note('A', { kind: 'stopped' })
  const pause = sleep(LEASE_MS + EXTRA_PAUSE_MS)
  note('B', { kind: 'started' })
  writeFileSync(begin, '')
  const heldB = await b.report(['held'], stage.remaining())
  await b.report(['released'], stage.remaining())
  await b.gone()
  await pause
  writeFileSync(gate, '')
  a.signal('SIGCONT')
  note('A', { kind: 'continued' })
  await a.report(['released', 'failed'], stage.remaining())
  await a.gone()
  const record = await readRecord(place)
  return judge({ guarded, events, record, tokens: { A: heldA.token, B: heldB.token } })
}

function judge(half: Pick<Half, 'guarded' | 'events' | 'record' | 'tokens'>): Half {
  const { guarded, events, record, tokens } = half
  const of = (actor: Actor) => events.filter((event) => event.actor === actor).map((event) => event.what)
  const refusal = of('A').find((what): what is Extract<Report, { kind: 'refused' }> => what.kind === 'refused')
  const bWrote = of('B').some((what) => what.kind === 'wrote')
  const right = BEFORE + AMOUNT_A + AMOUNT_B
  // The timeline starts shortly before A holds the lock, not with the start of a process.
  const origin = (events.find((event) => event.what.kind === 'held')?.atMs ?? 0) - LEAD_IN_MS
  const shifted = events.map((event) => ({ ...event, atMs: Math.max(0, event.atMs - origin) }))
  const ordered = BigInt(tokens.B) > BigInt(tokens.A)
  const asExpected = guarded
    ? bWrote && ordered && refusal?.error === 'StaleTokenError' && record === right
    : bWrote && ordered && refusal === undefined && record === BEFORE + AMOUNT_A
  return { ...half, events: shifted, leaseMs: LEASE_MS, before: BEFORE, right, refused: refusal?.error, asExpected }
}
