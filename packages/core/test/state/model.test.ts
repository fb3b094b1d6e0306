import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Command,
  decodeEntry,
  type Entry,
  encodeEntry,
  type Index,
  LockState,
  type Millis,
} from '../../src/index.js'
import { checkAgreement } from './agreement.js'
import { Model } from './model.js'
import { Clients, hex, type Turn, turns } from './script.js'

const OPENINGS: Command[] = [400, 1000, 5000].map((ttl, i) => ({
  kind: 'openSession',
  nonce: hex(500 + i),
  secret: hex(600 + i),
  ttlMs: ttl as Millis,
  client: `c${i}`,
  local: false,
}))

const REACHED = [
  'acquire: aborted',
  'acquire: busy',
  'acquire: ended',
  'acquire: expired-request',
  'acquire: granted',
  'acquire: invalid',
  'acquire: limit',
  'acquire: mismatch',
  'acquire: queued',
  'acquire: session-ended',
  'acquire: timeout',
  'adopt: aborted',
  'adopt: expired-request',
  'adopt: granted',
  'adopt: limit',
  'adopt: not-holder',
  'cancel: cancelled ended',
  'cancel: cancelled granted',
  'cancel: cancelled queued',
  'cancel: cancelled unknown',
  'cancel: expired-request',
  'cancel: invalid',
  'closeSession: closed',
  'configure: configured',
  'configure: invalid',
  'configure: mismatch',
  'delete: deleted',
  'delete: mismatch',
  'delete: not-holder',
  'openSession: invalid',
  'openSession: limit',
  'openSession: opened',
  'put: limit',
  'put: mismatch',
  'put: not-holder',
  'put: put',
  'put: version-conflict',
  'release: expired-request',
  'release: not-holder',
  'release: released',
  'renew: invalid',
  'renew: renewed',
  'renew: session-ended',
  'steal: invalid',
  'steal: not-holder',
  'steal: stolen',
  'event freed death',
  'event freed expired',
  'event freed moved',
  'event freed operator',
  'event freed released',
  'event freed stolen',
  'event unqueued cancelled',
  'event unqueued session-ended',
  'event unqueued timeout',
]

function play(script: readonly Turn[], restoreEvery: number, seen = new Map<string, number>()): void {
  let state = LockState.create({ epoch: 3 })
  const model = new Model(3)
  const clients = new Clients(model)
  script.forEach(({ time, wishes }, i) => {
    const commands = wishes.map((wish) => clients.command(wish))
    const entry: Entry = {
      at: (i === 0 ? 1000 : clients.time(time)) as Millis,
      commands: i === 0 ? OPENINGS : commands,
    }
    const applied = state.apply(decodeEntry(encodeEntry(entry)), (i + 1) as Index)
    applied.results.forEach((result, k) => {
      const answer =
        result.kind === 'refused' ? result.code : result.kind === 'cancelled' ? `cancelled ${result.was}` : result.kind
      const what = `${entry.commands[k]?.kind}: ${answer}`
      seen.set(what, (seen.get(what) ?? 0) + 1)
    })
    for (const event of applied.events) {
      const what = `event ${event.kind}${'reason' in event ? ` ${event.reason}` : ''}`
      seen.set(what, (seen.get(what) ?? 0) + 1)
    }
    checkAgreement(state, applied, model, model.apply(entry), `entry ${i + 1}`)
    if (i % restoreEvery === 0) state = LockState.restore(state.snapshot())
  })
}

describe('the state machine and the naive model', () => {
  it('agree on results, pushes, events and queries for random scripts', () => {
    fc.assert(
      fc.property(turns, fc.integer({ min: 2, max: 60 }), (script, restoreEvery) => play(script, restoreEvery)),
      { numRuns: Number(process.env.MODEL_RUNS ?? 150) },
    )
  })

  it('cover every outcome of a command', () => {
    const seen = new Map<string, number>()
    for (const script of fc.sample(turns, { numRuns: 60, seed: 7 })) play(script, 10, seen)
    if (process.env.MODEL_TALLY === '1')
      console.log(
        [...seen]
          .map((one) => one.join(' '))
          .sort()
          .join('\n'),
      )
    expect(REACHED.filter((what) => !seen.has(what))).toEqual([])
  })
})
