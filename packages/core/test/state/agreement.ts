import { expect } from 'vitest'
import {
  type Applied,
  type Change,
  type Event,
  LockState,
  queryState,
  registerOf,
  type Result,
} from '../../src/index.js'
import type { Model } from './model.js'
import type { ModelApplied, ModelResult } from './model-state.js'

/** Compares what an entry did with what the model says it does, and then everything that a query shows. */
export function checkAgreement(
  state: LockState,
  applied: Applied,
  model: Model,
  expected: ModelApplied,
  where = '',
): void {
  if (applied.results.length !== expected.results.length) expect.fail(`${applied.results.length} results`)
  applied.results.forEach((result, i) =>
    checkResult(result, expected.results[i] as ModelResult, `${where} result ${i}`),
  )
  same(pushesOf(applied.pushes), pushesOf(expected.pushes), `${where} pushes`)
  same(eventsOf(applied.events), eventsOf(expected.events), `${where} events`)
  same(stateOf(state, model), modelOf(model), `${where} state`)
}

/** Equal, by a comparison that is quick while nothing is wrong. */
function same(actual: unknown, expected: unknown, where: string): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) expect(actual, where).toEqual(expected)
}

function text(value: unknown): string {
  return JSON.stringify(value, (_, one) =>
    typeof one === 'bigint' ? `${one}n` : one instanceof Uint8Array ? [...one] : one,
  )
}

function checkResult(actual: Result, expected: ModelResult, where: string): void {
  if (actual.kind !== 'refused' || expected.kind !== 'refused') {
    if (actual.kind === 'renewed' && expected.kind === 'renewed') {
      same(actual.changes.map(changeOf), expected.changes.map(changeOf), where)
    } else same(text(sorted(actual)), text(sorted(expected)), where)
    return
  }
  if (!expected.codes.includes(actual.code))
    expect.fail(`${where}: ${actual.code} (${actual.message}), not ${expected.codes}`)
  if (actual.code === 'version-conflict') expect(actual.version, where).toBe(expected.version)
  // A repeat must answer the same.
  expected.codes = [actual.code]
}

function sorted(value: object): object {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function changeOf(change: Change): unknown {
  if (change.kind === 'granted') return ['granted', change.number, change.request, grantOf(change.grant)]
  if (change.kind === 'refused') return ['refused', change.number, change.request, change.refused.code]
  return ['ended', change.number, change.hold, change.reason, change.text]
}

function grantOf({ hold, locks, secret }: { hold: number; locks: readonly unknown[]; secret?: string }): unknown {
  return [hold, locks.map((one) => lockOf(one as never)), secret]
}

function lockOf({ name, mode, token, slot }: { name: string; mode: unknown; token: number; slot?: number }): unknown {
  return [name, mode, token, slot]
}

/** By session: the order between sessions does not matter. */
function pushesOf(pushes: readonly { session: number; change?: Change; ended?: string }[]): unknown {
  const bySession: Record<number, unknown[]> = {}
  for (const { session, change, ended } of pushes) {
    bySession[session] ??= []
    bySession[session].push(change === undefined ? ended : changeOf(change))
  }
  return bySession
}

function eventsOf(events: readonly Event[]): string[] {
  return events
    .map((event) => {
      if (event.kind === 'held') return text(['held', grantOf(event.grant), event.session, event.client])
      if (event.kind === 'freed')
        return text(['freed', event.hold, event.locks.map(lockOf), event.reason, event.actor, event.text])
      return text(sorted(event))
    })
    .sort()
}

function stateOf(state: LockState, model: Model): unknown {
  const shown = queryState(state, { limit: 1000 }, state.index)
  return {
    now: state.now,
    limits: sorted(state.limits),
    due: state.nextDeadline(),
    held: shown.held.map((one) => [
      one.id,
      one.locks.map(lockOf),
      one.session,
      one.client,
      one.persistent,
      one.remainingMs,
    ]),
    pending: shown.pending.map((one) => [one.session, one.request, one.remainingMs]),
    delays: shown.delays.map((one) => text([one.name, one.mode, one.slot, one.remainingMs])).sort(),
    sessions: shown.sessions.map((one) => [one.id, one.ttlMs, one.remainingMs, one.holds, one.waiters]),
    registers: model.registers.map(({ key }) => {
      const one = registerOf(state, key)
      return [key, [...(one?.value ?? [])], String(one?.version), one?.lock]
    }),
  }
}

function modelOf(model: Model): unknown {
  const { now } = model
  const expiry = (id: number | undefined) => model.session(id)?.expires as number
  return {
    now,
    limits: sorted(model.limits),
    due: model.nextDeadline(),
    held: model.holds.map((one) => [
      one.id,
      one.locks.map(lockOf),
      one.session,
      one.client,
      one.persistent,
      one.session === undefined || (one.persistent && one.confirmed) ? undefined : expiry(one.session) - now,
    ]),
    pending: model.waiters.map((one) => [
      one.command.session,
      one.command.request,
      one.due < 0 ? undefined : one.due - now,
    ]),
    delays: model.delays
      .flatMap((delay) => delay.locks.map((one) => text([one.name, one.mode, one.slot, delay.due - now])))
      .sort(),
    sessions: model.sessions.map((one) => [
      one.id,
      one.ttl,
      one.expires - now,
      model.holds.filter((hold) => hold.session === one.id).length,
      model.waiters.filter((waiter) => waiter.command.session === one.id).length,
    ]),
    registers: model.registers.map((one) => [one.key, [...one.value], String(one.version), one.lock]),
  }
}
