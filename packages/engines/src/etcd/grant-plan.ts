import type { Mode } from '@leasehold/core'
import { GRANTS_PER_TXN_MAX, type HoldRecord, heldView, type RequestRecord, type Terms } from './layout.js'

/** A hold or a delay of one lock, as read from etcd. */
export interface Blocker {
  readonly kind: 'hold' | 'delay'
  readonly request: string
  readonly record: HoldRecord
  /** The mode of this lock in the record. */
  readonly mode: Mode
  readonly slot: number | undefined
  /** Of a shared hold: the token as text, and the revisions that its key must still have for the token to be reused. */
  readonly token: string
  readonly createRevision: number
  readonly modRevision: number
}

/** A request in the queue of one lock that holds nothing yet. */
export interface Waiter {
  readonly request: string
  readonly record: RequestRecord
  readonly lease: bigint
  /** Its place in the queue. */
  readonly createRevision: number
}

export interface LockView {
  readonly blockers: readonly Blocker[]
  /** In the order of their arrival. */
  readonly waiters: readonly Waiter[]
}

export interface PlannedGrant {
  readonly waiter: Waiter
  readonly ordinal: number
  readonly terms: readonly Terms[]
  /** Shared holds that must still exist, since the grant reuses the token of their generation. */
  readonly companions: readonly { readonly name: string; readonly blocker: Blocker }[]
}

export interface Plan {
  readonly grants: readonly PlannedGrant[]
  /** Locks that a front waiter also wants and that were not read. */
  readonly missing: readonly string[]
}

/** A lock while grants are planned. */
interface Working {
  readonly blockers: { mode: Mode; slot: number | undefined; from: Blocker | undefined; first: number | undefined }[]
  isClosed: boolean
}

/**
 * Decides which requests are granted now. Pure: the state of some locks in, grants out. Requests are considered in the order of their
 * arrival; one that cannot be granted blocks all of its locks for those behind it.
 */
export function planGrants(locks: ReadonlyMap<string, LockView>): Plan {
  const working = new Map<string, Working>()
  const waiters = new Map<string, Waiter>()
  for (const [name, view] of locks) {
    const blockers = view.blockers.map((from) => ({ mode: from.mode, slot: from.slot, from, first: undefined }))
    working.set(name, { blockers, isClosed: false })
    for (const waiter of view.waiters) waiters.set(waiter.request, waiter)
  }
  const grants: PlannedGrant[] = []
  const missing = new Set<string>()
  for (const waiter of [...waiters.values()].sort((a, b) => a.createRevision - b.createRevision)) {
    const wanted = waiter.record.locks.map(({ name }) => working.get(name))
    const isFront = wanted.every((lock) => lock === undefined || !lock.isClosed)
    const unread = waiter.record.locks.filter(({ name }) => !working.has(name))
    if (isFront) for (const { name } of unread) missing.add(name)
    const grant =
      isFront && unread.length === 0 && grants.length < GRANTS_PER_TXN_MAX
        ? grantOf(waiter, grants.length, working)
        : undefined
    if (grant) grants.push(grant)
    else for (const lock of wanted) if (lock) lock.isClosed = true
  }
  return { grants, missing: [...missing] }
}

function grantOf(waiter: Waiter, ordinal: number, working: ReadonlyMap<string, Working>): PlannedGrant | undefined {
  const places = waiter.record.locks.map(({ name, mode }) => {
    const lock = working.get(name) as Working
    return { name, mode, lock, place: placeIn(lock, mode) }
  })
  if (places.some(({ place }) => place === undefined)) return undefined
  const companions: { name: string; blocker: Blocker }[] = []
  const terms = places.map(({ name, mode, lock, place }): Terms => {
    const slot = place?.slot
    const peer = mode === 'shared' ? lock.blockers.find(({ from }) => from?.kind !== 'delay') : undefined
    lock.blockers.push({ mode, slot, from: undefined, first: peer?.first ?? ordinal })
    if (slot !== undefined) return { slot }
    if (mode !== 'shared') return {}
    if (peer?.from === undefined) return { first: peer?.first ?? ordinal }
    companions.push({ name, blocker: peer.from })
    const { token } = peer.from
    lock.blockers[lock.blockers.length - 1] = { mode, slot, from: peer.from, first: undefined }
    return { token }
  })
  return { waiter, ordinal, terms, companions }
}

/** Where a mode fits beside the blockers of a lock; undefined: nowhere. */
export function placeIn(
  lock: { readonly blockers: readonly { readonly mode: Mode; readonly slot: number | undefined }[] },
  mode: Mode,
): { readonly slot: number | undefined } | undefined {
  const { blockers } = lock
  if (mode === 'exclusive') return blockers.length === 0 ? { slot: undefined } : undefined
  if (mode === 'shared') return blockers.every((one) => one.mode === 'shared') ? { slot: undefined } : undefined
  const taken = new Set<number>()
  for (const { mode: other, slot } of blockers) {
    if (typeof other !== 'object' || other.permits !== mode.permits || slot === undefined) return undefined
    taken.add(slot)
  }
  for (let slot = 0; slot < mode.permits; slot++) if (!taken.has(slot)) return { slot }
  return undefined
}

/** Why a mode never matches the present ones of a lock; undefined: it does. */
export function mismatchOf(mode: Mode, there: readonly Mode[]): string | undefined {
  const size = (one: Mode) => (typeof one === 'object' ? one.permits : 0)
  const other = there.find((one) => size(one) !== size(mode))
  if (other === undefined) return undefined
  const describe = (one: Mode) => (typeof one === 'object' ? `a semaphore of ${one.permits} permits` : 'a lock')
  return `it is ${describe(other)}, not ${describe(mode)}`
}

/** The part of a hold's or delay's record for one of its locks. */
export function blockerOf(
  kind: 'hold' | 'delay',
  name: string,
  request: string,
  record: HoldRecord,
  revisions: { createRevision: number; modRevision: number },
): Blocker {
  const i = record.locks.findIndex((lock) => lock.name === name)
  const { mode } = record.locks[i] as { mode: Mode }
  const token =
    kind === 'hold' && mode === 'shared' ? String(heldView(record, revisions.createRevision).locks[i]?.token) : ''
  return { kind, request, record, mode, slot: record.terms[i]?.slot, token, ...revisions }
}
