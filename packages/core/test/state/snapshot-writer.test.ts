import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Command,
  InvariantError,
  LockState,
  type Millis,
  type SessionId,
  type SnapshotWriter,
} from '../../src/index.js'
import { Model } from './model.js'
import { referenceSnapshot } from './reference-snapshot.js'
import { Clients, hex, type Turn, turns } from './script.js'
import { Bench } from './support.js'

/** A view that is being written down, and what it must come to. */
class Watched {
  readonly wanted: Uint8Array
  private readonly view: SnapshotWriter
  private readonly pieces: Uint8Array[] = []

  constructor(state: LockState) {
    this.wanted = referenceSnapshot(state)
    this.view = state.beginSnapshot()
  }

  /** Returns whether it is finished; compares it then. */
  step(work: number, what: string): boolean {
    const done = this.view.step(work)
    this.pieces.push(...this.view.take())
    if (done) expect(Buffer.compare(Buffer.concat(this.pieces), this.wanted), what).toBe(0)
    return done
  }

  finish(what: string): void {
    while (!this.step(1000, what));
  }
}

const OPENINGS: Command[] = [400, 1000, 5000].map((ttl, i) => ({
  kind: 'openSession',
  nonce: hex(500 + i),
  secret: hex(600 + i),
  ttlMs: ttl as Millis,
  client: `c${i}`,
  local: false,
}))

/** Plays the script with one snapshot after another, each of which advances by `steps` after each entry. */
function play(script: readonly Turn[], steps: readonly number[]): number {
  const state = LockState.create({ epoch: 3 })
  const model = new Model(3)
  const clients = new Clients(model)
  let views = 0
  let watched: Watched | undefined
  script.forEach(({ time, wishes }, i) => {
    const commands = i === 0 ? OPENINGS : wishes.map((wish) => clients.command(wish))
    const entry = { at: (i === 0 ? 1000 : clients.time(time)) as Millis, commands }
    state.apply(entry, (i + 1) as never)
    model.apply(entry)
    if (watched === undefined) {
      watched = new Watched(state)
      views++
    }
    const work = steps[i % steps.length] as number
    if (work > 0 && watched.step(work, `view ${views}, until entry ${i + 1}`)) watched = undefined
  })
  watched?.finish(`view ${views}, to the end`)
  expect(Buffer.compare(state.snapshot(), referenceSnapshot(state))).toBe(0)
  return views
}

describe('a view', () => {
  it('stays the state that it was opened on, whatever is applied while it is written', { timeout: 300_000 }, () => {
    let views = 0
    const work = fc.constantFrom(0, 1, 1, 17, 50, 200, 500)
    fc.assert(
      fc.property(turns, fc.array(work, { minLength: 1, maxLength: 9 }), (script, steps) => {
        views += play(script, steps)
      }),
      { numRuns: Number(process.env.VIEW_RUNS ?? 200) },
    )
    expect(views).toBeGreaterThan(Number(process.env.VIEW_RUNS ?? 200))
  })

  it('of many elements stays so too, while tables are replaced and their order is made', () => {
    for (const seed of [1, 2, 3]) churn(seed)
  })

  it('is one at a time, but a snapshot in one go can be made meanwhile; when it is closed, nothing is left of it', () => {
    const bench = new Bench()
    const session = bench.open()
    const { hold } = bench.hold(session, ['x'])
    const before = bench.state.snapshot()
    const view = bench.state.beginSnapshot()
    expect(() => bench.state.beginSnapshot()).toThrow(InvariantError)
    bench.one({ kind: 'release', session, hold })
    expect(Buffer.compare(bench.state.snapshot(), referenceSnapshot(bench.state))).toBe(0)
    expect(bench.state.machine.hash.observer).toBe(view)
    view.close()
    expect(bench.state.machine.hash.observer).toBeUndefined()
    const next = bench.state.beginSnapshot()
    view.close()
    while (!next.step(1));
    expect(Buffer.compare(Buffer.concat(next.take()), before)).not.toBe(0)
    expect(bench.state.machine.hash.observer).toBeUndefined()
  })
})

/** Thousands of holds, permits, registers and sessions in any order of their names, and a view after every few entries. */
function churn(seed: number): void {
  const bench = new Bench({ limits: { holdsPerSession: 100_000 } })
  let random = seed
  const below = (limit: number): number => {
    random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((random / 2 ** 32) * limit)
  }
  const sessions: SessionId[] = []
  const held: { session: SessionId; hold: never }[] = []
  const command = (): Command => {
    const session = sessions[below(sessions.length)] as SessionId
    const name = String(below(10_000))
    const request = bench.next(session)
    const numbered = { session, request, ack: { lowest: Math.max(1, request - 3), also: [] } }
    switch (below(10)) {
      case 0:
      case 1:
        return { kind: 'put', ...numbered, key: name, value: new Uint8Array(below(30)) }
      case 2:
        return { kind: 'delete', ...numbered, key: name }
      case 3:
        return { kind: 'renew', session, seen: 0 }
      case 4:
      case 5: {
        const [one] = held.splice(below(held.length), 1)
        return { kind: 'release', session: one?.session ?? session, hold: one?.hold ?? (1 as never) }
      }
      default: {
        const permits = { permits: 1 + below(3) }
        const locks = [{ name, mode: below(2) === 0 ? ('exclusive' as const) : permits }]
        const waitMs = below(3) === 0 ? 60_000 : 0
        return { ...bench.acquireCommand(session, locks, { waitMs }), ...numbered }
      }
    }
  }
  const apply = (count: number): void => {
    const commands = Array.from({ length: count }, command)
    bench.apply(commands).results.forEach((result, i) => {
      const { session } = commands[i] as { session: SessionId }
      if (result.kind === 'granted') held.push({ session, hold: result.grant.hold as never })
    })
  }
  for (let i = 0; i < 300; i++) sessions.push(bench.open(3_600_000))
  for (let i = 0; i < 80; i++) apply(200)
  for (let round = 0; round < 4; round++) {
    const watched = new Watched(bench.state)
    for (let i = 0; !watched.step(500 + below(8000), `seed ${seed}, round ${round}`); i++) {
      apply(below(60))
      if (i % 40 === 5) {
        const session = sessions.splice(below(sessions.length), 1)[0] as SessionId
        bench.one({ kind: 'closeSession', session, by: 'operator', reason: '' })
        sessions.push(bench.open(3_600_000))
      }
    }
  }
}
