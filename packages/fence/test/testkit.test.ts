import Database from 'libsql'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../../tests/services/postgres.js'
import type { Service } from '../../../tests/services/process.js'
import { describeWith } from '../../../tests/services/suite.js'
import { guardSql } from '../src/migrations.js'
import { fence as fencePg, fencedUpdate } from '../src/pg.js'
import { fence as fenceSqlite } from '../src/sqlite.js'
import { FencingProofError, pausing, provesFencing } from '../src/testkit.js'
import { FAULTS, planted } from './support/planted.js'

const silent = { log: () => {} }
const outcomes = (scenarios: readonly { id: string; outcome: string }[]) =>
  Object.fromEntries(scenarios.map(({ id, outcome }) => [id, outcome]))

describe('the test kit', () => {
  it('passes a correct resource, and reports the scenarios', async () => {
    const lines: string[] = []
    const proved = await provesFencing(planted('none'), { log: (line) => lines.push(line), seed: 1 })
    expect(new Set(proved.map((one) => one.outcome))).toEqual(new Set(['holds']))
    expect(lines).toHaveLength(proved.length)
    expect(lines.find((line) => line.includes('A4'))).toMatch(/^holds {3}A4 /)
  })

  it.each(FAULTS)('finds the planted fault: %s', async (fault) => {
    const error = await provesFencing(planted(fault), silent).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(FencingProofError)
    expect((error as FencingProofError).message).toMatch(/^the resource is not fenced: /)
  })

  it.each([
    ['< for ≤', 'repeat'],
    ['mark not raised on open', 'A4'],
    ['mark deleted with the row', 'removed'],
    ['comparison as double', 'double'],
    ['comparison as text', 'digits'],
    ['check outside the transaction', 'A3'],
    ['read-then-write in the application', 'A3'],
    ['mark in another store', 'A3'],
    ['mark in memory only', 'A10'],
    ['no check', 'A1'],
  ] as const)('tells %s by the scenario %s', async (fault, id) => {
    const error = (await provesFencing(planted(fault), silent).catch((e: unknown) => e)) as FencingProofError
    expect(outcomes(error.scenarios)[id]).toBe('fails')
  })

  it('skips scenarios for which the resource has no function', async () => {
    const { open, read, write } = planted('none')
    const proved = await provesFencing({ open, read, write }, { ...silent, from: 1_000n })
    expect(outcomes(proved)).toMatchObject({ A10: 'skipped', removed: 'skipped', digits: 'skipped', A1: 'holds' })
  })

  it('rejects a resource without its functions, and reports errors other than rejections', async () => {
    await expect(provesFencing({} as never)).rejects.toMatchObject({ code: 'invalid' })
    const broken = { ...planted('none'), write: () => Promise.reject(new Error('disk')) }
    await expect(provesFencing(broken, silent)).rejects.toThrow(/disk/)
  })

  it('passes the guard of SQLite', async () => {
    const db = new Database(':memory:')
    db.exec(guardSql('sqlite'))
    db.exec('CREATE TABLE t (n INTEGER NOT NULL); INSERT INTO t VALUES (0)')
    const guard = fenceSqlite(db)
    const proved = await provesFencing(
      {
        open: (hold) => guard.open(hold),
        read: (hold) =>
          guard.with(hold, () => (db.prepare('SELECT n FROM t').all()[0] as { n: number } | undefined)?.n ?? 0),
        write: (hold, n) => guard.with(hold, () => db.exec(`DELETE FROM t; INSERT INTO t VALUES (${n})`)),
        remove: (hold) => guard.with(hold, () => db.exec('DELETE FROM t')),
      },
      silent,
    )
    expect(outcomes(proved)).toMatchObject({ storm: 'holds', removed: 'holds', double: 'holds', digits: 'holds' })
    db.close()
  })
})

describeWith('PostgreSQL', 'the test kit on PostgreSQL', () => {
  let server: Service
  let pool: pg.Pool
  beforeAll(async () => {
    server = await startPostgres()
    pool = pausing(new pg.Pool({ connectionString: server.url }))
    await pool.query(guardSql('pg'))
    await pool.query('CREATE TABLE t (id int PRIMARY KEY, n bigint NOT NULL)')
    await pool.query('INSERT INTO t (id, n) VALUES (1, 0), (2, 0)')
    await pool.query(guardSql('pg', { form: 'column', on: 't' }))
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })
  const read = async (id: number, on: { query: pg.Pool['query'] } = pool) =>
    Number((await on.query('SELECT n FROM t WHERE id = $1', [id])).rows[0].n)

  it('passes the guard table and the mark on the row', async () => {
    const guard = fencePg(pool)
    await provesFencing(
      {
        open: (hold) => guard.open(hold),
        read: (hold) => guard.with(hold, (tx) => read(1, tx)),
        write: (hold, n) => guard.with(hold, (tx) => tx.query('UPDATE t SET n = $1 WHERE id = 1', [n])),
      },
      silent,
    )
    const row = { table: 't', where: { id: 2 } }
    await provesFencing(
      {
        open: (hold) => fencedUpdate(pool, hold, row),
        read: async (hold) => Number((await fencedUpdate(pool, hold, row)).n),
        write: (hold, n) => fencedUpdate(pool, hold, { ...row, set: { n } }),
      },
      silent,
    )
  })

  it('finds a check outside the transaction', async () => {
    await pool.query('CREATE TABLE wrong (mark bigint NOT NULL, n bigint NOT NULL)')
    await pool.query('INSERT INTO wrong VALUES (0, 0)')
    const check = async (token: bigint) => {
      const { rows } = await pool.query('SELECT mark FROM wrong')
      if (BigInt(rows[0].mark) > token) throw Object.assign(new Error('stale'), { stale: true })
    }
    const raise = async (token: bigint) => {
      await check(token)
      await pool.query('UPDATE wrong SET mark = greatest(mark, $1)', [token.toString()])
    }
    const token = (hold: { names: readonly string[]; tokenOf(name: string): bigint }) =>
      hold.tokenOf(hold.names[0] as string)
    const proof = provesFencing(
      {
        open: (hold) => raise(token(hold)),
        async read(hold) {
          await raise(token(hold))
          return Number((await pool.query('SELECT n FROM wrong')).rows[0].n)
        },
        async write(hold, n) {
          await raise(token(hold))
          await pool.query('UPDATE wrong SET n = $1', [n])
        },
        isStale: (error) => (error as { stale?: boolean }).stale === true,
      },
      silent,
    )
    await expect(proof).rejects.toThrow(FencingProofError)
  })
})
