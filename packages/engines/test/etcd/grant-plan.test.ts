import type { Mode } from '@leasehold/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type HoldRecord, heldView, type RequestRecord } from '../../src/etcd/layout.js'
import { blockerOf, type LockView, mismatchOf, planGrants } from '../../src/etcd/grant-plan.js'

const NAMES = ['a', 'b', 'c']

function record(locks: readonly { name: string; mode: Mode }[]): RequestRecord {
  const rest = { sid: 's', session: '1', client: '', number: 1, at: 0, waitMs: null, delayMs: 0, delayLease: '0' }
  return { ...rest, epoch: 1, locks, persistent: false, data: '' }
}

interface Asked {
  readonly at: number
  readonly locks: readonly { name: string; mode: Mode }[]
}

/** The locks as in etcd after these requests in this order, without holds. */
function queued(asked: readonly Asked[]): Map<string, LockView> {
  const views = new Map<string, LockView & { waiters: LockView['waiters'][number][] }>()
  for (const name of NAMES) views.set(name, { blockers: [], waiters: [] })
  for (const { at, locks } of asked) {
    for (const { name } of locks) {
      views.get(name)?.waiters.push({ request: `s.${at}`, record: record(locks), lease: 1n, createRevision: at })
    }
  }
  return views
}

const modes = fc.oneof(fc.constant<Mode>('exclusive'), fc.constant<Mode>('shared'))
const asks = fc.array(
  fc.uniqueArray(fc.record({ name: fc.constantFrom(...NAMES), mode: modes }), {
    minLength: 1,
    maxLength: 3,
    selector: ({ name }) => name,
  }),
  { maxLength: 12 },
)

/** A naive implementation of the rule: in order of arrival, every request that fits and whose locks no earlier request waits for. */
function naive(asked: readonly Asked[]): number[] {
  const holders = new Map<string, Mode[]>()
  const closed = new Set<string>()
  const granted: number[] = []
  for (const { at, locks } of asked) {
    const fits = locks.every(({ name, mode }) => {
      const others = holders.get(name) ?? []
      return !closed.has(name) && (mode === 'exclusive' ? others.length === 0 : !others.includes('exclusive'))
    })
    for (const { name, mode } of locks) {
      if (fits) holders.set(name, [...(holders.get(name) ?? []), mode])
      else closed.add(name)
    }
    if (fits) granted.push(at)
  }
  return granted
}

describe('the planned grants', () => {
  it('are the same as by a naive implementation of the rule', () => {
    fc.assert(
      fc.property(asks, (list) => {
        const asked = list.map((locks, i) => ({ at: i + 1, locks }))
        const { grants, missing } = planGrants(queued(asked))
        expect(missing).toEqual([])
        expect(grants.map(({ waiter }) => waiter.createRevision)).toEqual(naive(asked))
      }),
    )
  })

  it('gives readers of one transaction one token, that of the first, and others tokens of their own', () => {
    const locks = [{ name: 'a', mode: 'shared' as const }]
    const { grants } = planGrants(queued([1, 2, 3].map((at) => ({ at, locks }))))
    const views = grants.map(({ waiter, ordinal, terms }) => {
      return heldView({ ...waiter.record, ordinal, terms, grantedAt: 0 }, 50)
    })
    expect(new Set(views.map(({ id }) => id)).size).toBe(3)
    expect(views.map((view) => view.locks[0]?.token)).toEqual([views[0]?.id, views[0]?.id, views[0]?.id])
  })

  it('reuses the token of present readers, on the condition that they still hold', () => {
    const locks = [{ name: 'a', mode: 'shared' as const }]
    const held: HoldRecord = { ...record(locks), ordinal: 0, terms: [{ first: 0 }], grantedAt: 0 }
    const blocker = blockerOf('hold', 'a', 's.9', held, { createRevision: 9, modRevision: 9 })
    const views = queued([{ at: 20, locks }])
    views.set('a', { blockers: [blocker], waiters: views.get('a')?.waiters ?? [] })
    const [grant] = planGrants(views).grants
    expect(grant?.terms).toEqual([{ token: String(heldView(held, 9).id) }])
    expect(grant?.companions).toEqual([{ name: 'a', blocker }])
  })

  it('gives each permit the lowest free slot, and none beside a delay on its slot', () => {
    const locks = [{ name: 'a', mode: { permits: 3 } }]
    const delayed: HoldRecord = { ...record(locks), ordinal: 0, terms: [{ slot: 1 }], grantedAt: 0 }
    const views = queued([1, 2, 3].map((at) => ({ at, locks })))
    const blocker = blockerOf('delay', 'a', 's.9', delayed, { createRevision: 9, modRevision: 9 })
    views.set('a', { blockers: [blocker], waiters: views.get('a')?.waiters ?? [] })
    expect(planGrants(views).grants.map(({ terms }) => terms[0]?.slot)).toEqual([0, 2])
  })

  it('requests the locks of a front waiter that were not read', () => {
    const locks = NAMES.map((name) => ({ name, mode: 'exclusive' as const }))
    const views = queued([{ at: 1, locks }])
    const read = new Map([['a', views.get('a') as LockView]])
    expect(planGrants(read)).toEqual({ grants: [], missing: ['b', 'c'] })
  })

  it('rejects modes that never match', () => {
    expect(mismatchOf({ permits: 3 }, [{ permits: 4 }])).toContain('4 permits')
    expect(mismatchOf('exclusive', [{ permits: 4 }])).toContain('a semaphore')
    expect(mismatchOf('exclusive', ['shared', 'exclusive'])).toBeUndefined()
  })
})
