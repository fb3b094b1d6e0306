import { HoldLostError, StaleTokenError, TOKEN_MAX, UnavailableError, UnknownOutcomeError } from '@leasehold/core'
import { MissingRowError } from '@leasehold/fence'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { holdOf, holdOfLocks } from '../../../packages/fence/test/support/holds.js'
import { proxyTo } from '../../../packages/fence/test/support/proxy.js'
import { provesFencing } from '../../../packages/fence/src/testkit.js'
import { describeWith } from '../../services/suite.js'
import { type AnyGuard, KINDS, type Store } from './stores.js'

const R = 'billing/invoice-42'

for (const kind of KINDS) {
  const title = `the rules of every SQL guard: ${kind.name}`
  const suite = () => {
    let store: Store
    let guard: AnyGuard
    beforeAll(async () => {
      store = await kind.start(8)
      guard = store.guard()
    })
    afterAll(() => store?.stop())
    beforeEach(async () => {
      await store.query('DELETE FROM leasehold_guard')
      await store.query('UPDATE leasehold_guard_floor SET token = 0')
      await store.query('DELETE FROM counter')
      await store.query('INSERT INTO counter (id, n) VALUES (1, 5)')
    })
    const n = async () => Number((await store.query('SELECT n FROM counter WHERE id = 1'))[0]?.n)
    const set = (value: number) => (tx: unknown) => store.write(tx, value)
    const markOf = async (resource = R) => {
      const [row] = await store.query(`SELECT token FROM leasehold_guard WHERE resource = '${resource}'`)
      return row === undefined ? undefined : BigInt(row.token as number)
    }

    it('accepts at or above the mark, refuses below, and stores mark and effect together', async () => {
      await guard.with(holdOf(33n), set(6))
      await guard.with(holdOf(33n), set(6))
      await guard.with(holdOf(34n), set(7))
      await guard.with(holdOf(34n), set(7))
      expect(await markOf()).toBe(34n)
      const error = await guard.with(holdOf(33n), set(9)).catch((e: unknown) => e)
      expect(error).toBeInstanceOf(StaleTokenError)
      expect(error).toMatchObject({ resource: R, token: 33n, mark: 34n })
      expect(await n()).toBe(7)
    })

    it('raises the mark when it is opened for reading', async () => {
      expect(await guard.with(holdOf(34n), (tx) => store.read(tx))).toBe(5)
      await expect(guard.with(holdOf(33n), set(6))).rejects.toThrow(StaleTokenError)
      await guard.open(holdOf(35n))
      await expect(guard.with(holdOf(34n), set(6))).rejects.toThrow(StaleTokenError)
      expect(await n()).toBe(5)
    })

    it('reads what the holder before has written, however long it has waited for it', async () => {
      let release: () => void = () => {}
      const released = new Promise<void>((resolve) => {
        release = resolve
      })
      let inside: () => void = () => {}
      const entered = new Promise<void>((resolve) => {
        inside = resolve
      })
      const first = guard.with(holdOf(33n), async (tx) => {
        await store.write(tx, 6)
        inside()
        await released
      })
      await entered
      const second = store.guard(undefined, 1).with(holdOf(34n), (tx) => store.read(tx))
      await new Promise((resolve) => setTimeout(resolve, 50))
      release()
      await first
      expect(await second).toBe(6)
    })

    it('compares all 63 bits', async () => {
      await guard.open(holdOf(TOKEN_MAX))
      await expect(guard.open(holdOf(TOKEN_MAX - 1n))).rejects.toMatchObject({ mark: TOKEN_MAX, token: TOKEN_MAX - 1n })
      await guard.open(holdOf(9_007_199_254_740_993n, 'other'))
      await expect(guard.open(holdOf(9_007_199_254_740_992n, 'other'))).rejects.toThrow(StaleTokenError)
    })

    it('refuses tokens that are negative, too large, a JSON number, or none', async () => {
      for (const token of [0n, -1n, TOKEN_MAX + 1n, 33, '3x', Number.NaN, null, undefined]) {
        await expect(guard.open(holdOf(token as bigint)), String(token)).rejects.toMatchObject({ code: 'invalid' })
        const row = { table: 'counter', where: { id: 1 }, set: { n: 9 } }
        const updating = (async () => await store.fencedUpdate(holdOf(token as bigint), row))()
        await expect(updating, String(token)).rejects.toMatchObject({ code: 'invalid' })
      }
      expect([await markOf(), await n()]).toEqual([undefined, 5])
    })

    it('refuses the token of another lock, and two guards of different locks on one resource', async () => {
      const one = store.guard({ resource: () => 'row-1' })
      await one.open(holdOf(33n, 'lock-a'))
      for (const token of [32n, 33n, 34n]) {
        const other = one.with(holdOf(token, 'lock-b'), set(9))
        await expect(other).rejects.toMatchObject({ code: 'mismatch', message: expect.stringMatching(/lock-a/) })
      }
      const both = holdOfLocks([
        { name: 'lock-a', mode: 'exclusive', token: 35n },
        { name: 'lock-b', mode: 'exclusive', token: 35n },
      ])
      await expect(one.with(both, set(9))).rejects.toMatchObject({ code: 'mismatch' })
      expect([await markOf('row-1'), await n()]).toEqual([33n, 5])
    })

    it('keeps a mark for each permit, and refuses the other kind', async () => {
      const gpu = (token: bigint, slot: number) => holdOf(token, 'gpu', { permits: 2 }, slot)
      await guard.open(gpu(33n, 0))
      await guard.open(gpu(34n, 1))
      await guard.open(gpu(35n, 0))
      await expect(guard.open(gpu(33n, 0))).rejects.toMatchObject({ code: 'stale-token', resource: 'gpu#0' })
      await guard.open(gpu(34n, 1))
      await expect(guard.open(holdOf(36n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
      await expect(guard.open(holdOf(36n, 'gpu#0'))).rejects.toMatchObject({ code: 'mismatch' })
      await guard.open(holdOf(33n))
      await expect(guard.open(holdOf(34n, R, { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    })

    it('opens several locks at once, or one', async () => {
      const both = holdOfLocks([
        { name: 'account/2', mode: 'exclusive', token: 31n },
        { name: 'account/1', mode: 'exclusive', token: 35n },
      ])
      await guard.with(both, set(6))
      expect([await markOf('account/1'), await markOf('account/2')]).toEqual([35n, 31n])
      await guard.open(holdOf(36n, 'account/2'))
      await expect(guard.with(both, set(7))).rejects.toMatchObject({ resource: 'account/2', token: 31n, mark: 36n })
      await guard.with(both, { lock: 'account/1' }, set(8))
      expect(await n()).toBe(8)
    })

    it('rolls the mark back with the transaction, after an error and after a loss', async () => {
      await guard.open(holdOf(33n))
      const boom = new Error('boom')
      const failing = guard.with(holdOf(34n), async (tx) => {
        await store.write(tx, 9)
        throw boom
      })
      await expect(failing).rejects.toBe(boom)
      const hold = holdOf(35n)
      const losing = guard.with(hold, async (tx) => {
        await store.write(tx, 9)
        hold.lose()
      })
      await expect(losing).rejects.toThrow(HoldLostError)
      await expect(guard.with(hold, set(9))).rejects.toThrow(HoldLostError)
      expect([await markOf(), await n()]).toEqual([33n, 5])
      await guard.with(holdOf(33n), set(6))
      expect(await n()).toBe(6)
    })

    it('acknowledges nothing when the body has ended the transaction, and perhaps begun another one', async () => {
      // PostgreSQL takes a second BEGIN for none; MySQL commits, and begins another transaction.
      const begins =
        kind.needs === 'MariaDB'
          ? [
              ['BEGIN', 'DO 0'],
              ['/* a helper */ START TRANSACTION', 'DO 0'],
            ]
          : []
      for (const texts of [['ROLLBACK'], ['COMMIT'], ['ROLLBACK', 'BEGIN'], ['COMMIT', 'BEGIN'], ...begins]) {
        const ending = guard.with(holdOf(33n), async (tx) => {
          await store.write(tx, 6)
          for (const text of texts) await store.raw(tx, text)
          if (texts.length > 1) await store.write(tx, 66)
        })
        await expect(ending, texts.join()).rejects.toThrow()
        expect(await n(), texts.join()).not.toBe(66)
        await guard.with(holdOf(33n), set(5))
      }
      const nested = guard.with(holdOf(33n), async (tx) => {
        await store.write(tx, 6)
        for (const text of ['BEGIN', 'COMMIT']) await store.raw(tx, text)
      })
      await expect(nested).rejects.toThrow()
      await guard.with(holdOf(33n), async (tx) => {
        for (const text of ['SAVEPOINT s', 'ROLLBACK TO SAVEPOINT s', 'RELEASE SAVEPOINT s']) await store.raw(tx, text)
        await store.write(tx, 7)
      })
      expect(await n()).toBe(7)
    })

    it('rolls back with a transaction of the caller, and enters none that is not there', async () => {
      const failing = store.transaction(async (tx) => {
        await store.write(await guard.enter(tx, holdOf(34n)), 9)
        throw new Error('boom')
      })
      await expect(failing).rejects.toThrow('boom')
      expect([await markOf(), await n()]).toEqual([undefined, 5])
      await store.transaction(async (tx) => store.write(await guard.enter(tx, holdOf(34n)), 6))
      expect([await markOf(), await n()]).toEqual([34n, 6])
      const stale = store.transaction(async (tx) => store.write(await guard.enter(tx, holdOf(33n)), 7))
      await expect(stale).rejects.toThrow(StaleTokenError)
      expect(await n()).toBe(6)
    })

    it('lets shared holds read, all with one token, and never write', async () => {
      const shared = holdOf(40n, R, 'shared')
      expect(await guard.with(shared, (tx) => store.read(tx))).toBe(5)
      expect(await guard.with(holdOf(40n, R, 'shared'), (tx) => store.read(tx))).toBe(5)
      await expect(guard.with(shared, set(6))).rejects.toMatchObject({ code: 'mismatch' })
      expect(await n()).toBe(5)
      await guard.with(holdOf(41n), set(6))
      await expect(guard.with(shared, (tx) => store.read(tx))).rejects.toThrow(StaleTokenError)
    })

    it('accepts any name as a resource, and takes no two names for one', async () => {
      const odd = `it's "odd" \\ $1 ? {id} \u{1f512} \` ${'é'.repeat(100)}`
      await guard.open(holdOf(33n, odd))
      await expect(guard.open(holdOf(32n, odd))).rejects.toMatchObject({ resource: odd, mark: 33n })
      for (const [i, name] of ['a', 'a ', 'A', 'ä', 'a/'].entries()) await guard.open(holdOf(BigInt(40 - i), name))
      expect(await markOf('a')).toBe(40n)
    })

    it('keeps the mark on the row: stale, missing, another lock, another mode', async () => {
      const row = { table: 'counter', where: { id: 1 } }
      expect(Number((await store.fencedUpdate(holdOf(34n), row))?.n)).toBe(5)
      const update = async (
        hold: Parameters<Store['fencedUpdate']>[0],
        changed: Parameters<Store['fencedUpdate']>[1],
      ) => await store.fencedUpdate(hold, changed)
      const six = { ...row, set: { n: 6 } }
      await expect(update(holdOf(33n), six)).rejects.toMatchObject({ code: 'stale-token', token: 33n, mark: 34n })
      await update(holdOf(34n), six)
      await update(holdOf(34n), six)
      expect(await n()).toBe(6)
      expect(Object.keys((await store.fencedUpdate(holdOf(34n), row)) ?? {})).toEqual(['id', 'n'])
      await expect(update(holdOf(35n, 'another'), six)).rejects.toMatchObject({ code: 'mismatch' })
      const missing = update(holdOf(35n), { ...six, where: { id: 77 } })
      await expect(missing).rejects.toThrow(MissingRowError)
      await expect(missing).rejects.toMatchObject({ code: 'mismatch' })
      await expect(update(holdOf(36n, R, 'shared'), six)).rejects.toMatchObject({ code: 'mismatch' })
      await expect(update(holdOf(36n, R, { permits: 2 }, 0), six)).rejects.toMatchObject({ code: 'mismatch' })
      await expect(update(holdOf(36n), { ...row, set: { leasehold_token: 1 } })).rejects.toMatchObject({
        code: 'invalid',
      })
      await expect(update(holdOf(36n), { table: 'counter', where: {} })).rejects.toMatchObject({ code: 'invalid' })
      await update(holdOf(TOKEN_MAX), six)
      await expect(update(holdOf(TOKEN_MAX - 1n), six)).rejects.toThrow(StaleTokenError)
    })

    it('prunes below the floor, and refuses those tokens from then on', async () => {
      await guard.open(holdOf(33n, 'old'))
      await guard.open(holdOf(40n, 'kept'))
      await guard.open(holdOf(34n, 'gpu', { permits: 2 }, 0))
      await guard.open(holdOf(41n, 'gpu', { permits: 2 }, 1))
      await guard.open(holdOf(35n, 'cpu', { permits: 2 }, 0))
      const locks = {
        acquire: async (name: string) => ({ ...holdOf(50n, name), release: async () => {} }),
        query: async () => ({ held: [{ locks: [{ token: 45n }, { token: 40n }] }], next: undefined }),
      }
      expect(await guard.prune(locks)).toEqual({ floor: 40n, deleted: 3 })
      const rows = await store.query('SELECT resource FROM leasehold_guard ORDER BY resource')
      expect(rows.map((row) => String(row.resource))).toEqual(['gpu', 'gpu#1', 'kept'])
      await expect(guard.open(holdOf(33n, 'old'))).rejects.toMatchObject({ code: 'stale-token', mark: 40n })
      const entering = store.transaction((tx) => guard.enter(tx, holdOf(39n, 'new')))
      await expect(entering).rejects.toMatchObject({ code: 'stale-token', mark: 40n })
      await guard.open(holdOf(40n, 'old'))
      expect(await guard.raiseFloor(7n)).toEqual({ floor: 40n, deleted: 0 })
      await guard.open(holdOf(60n, 'cpu'))
    })

    it('never lets a stale writer pass while the floor is raised and its mark deleted', async () => {
      for (let round = 0n; round < 15n; round++) {
        const live = 100n + round * 10n
        await guard.open(holdOf(live, 'race'))
        const [pruned, ...opened] = await Promise.allSettled([
          store.guard(undefined, 1).raiseFloor(live + 1n),
          store.guard(undefined, 2).with(holdOf(live - 1n, 'race'), set(9)),
          store.guard(undefined, 3).with(holdOf(live - 1n, 'race'), set(9)),
          store.guard(undefined, 4).open(holdOf(live + 1n, 'race')),
        ])
        expect(pruned?.status, String((pruned as PromiseRejectedResult).reason)).toBe('fulfilled')
        expect(opened.map((one) => one.status)).toEqual(['rejected', 'rejected', 'fulfilled'])
        expect(await markOf('race')).toBe(live + 1n)
      }
      expect(await n()).toBe(5)
    }, 240_000)

    it('passes the test kit, with the guard table and with the mark on the row', async () => {
      const silent = { log: () => {} }
      const table = await provesFencing(
        {
          open: (hold) => guard.open(hold),
          read: (hold) => guard.with(hold, (tx) => store.read(tx)),
          write: (hold, value) => guard.with(hold, (tx) => store.write(tx, value)),
        },
        silent,
      )
      expect(table.filter((one) => one.outcome === 'fails')).toEqual([])
      const row = { table: 'counter', where: { id: 1 } }
      await store.query('UPDATE counter SET n = 0, leasehold_token = 0, leasehold_lock = NULL')
      await provesFencing(
        {
          open: (hold) => store.fencedUpdate(hold, row),
          read: async (hold) => Number((await store.fencedUpdate(hold, row))?.n),
          write: (hold, value) => store.fencedUpdate(hold, { ...row, set: { n: value } }),
        },
        silent,
      )
    }, 240_000)

    // A store in this process has no connection to lose.
    if (kind.needs === undefined) return
    it('tells a connection lost before the commit from one after it', async () => {
      const proxy = await proxyTo(store.port)
      const through = store.guardAt?.(proxy.port)
      if (through === undefined) throw new Error(`${kind.name} has no guardAt`)
      try {
        await through.guard.open(holdOf(32n))
        const before = through.guard.with(holdOf(33n), async (tx) => {
          await store.write(tx, 6)
          proxy.cut()
          await new Promise((resolve) => setTimeout(resolve, 30))
          await store.write(tx, 66)
        })
        await expect(before).rejects.toThrow(UnavailableError)
        expect([await markOf(), await n()]).toEqual([32n, 5])

        const during = through.guard.with(holdOf(34n), async (tx) => {
          await store.write(tx, 7)
          proxy.cutAfterNextRequest()
        })
        await expect(during).rejects.toThrow(UnknownOutcomeError)
        await expect.poll(n).toBe(7)

        const row = { table: 'counter', where: { id: 1 }, set: { n: 8 } }
        await through.fencedUpdate(holdOf(34n), row)
        proxy.cutAfterNextRequest()
        await expect(through.fencedUpdate(holdOf(35n), row)).rejects.toThrow(UnknownOutcomeError)
        await through.guard.with(holdOf(36n), set(9))
        expect(await n()).toBe(9)
      } finally {
        await through.end()
        await proxy.close()
      }
      const nobody = store.guardAt?.(proxy.port)
      await expect(nobody?.guard.open(holdOf(37n))).rejects.toMatchObject({ code: 'unreachable', retryable: true })
      await nobody?.end()
    }, 240_000)
  }
  if (kind.needs === undefined) describe(title, suite)
  else describeWith(kind.needs, title, suite)
}
