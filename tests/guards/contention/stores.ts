import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import mysql from 'mysql2/promise'
import pg from 'pg'
import postgres from 'postgres'
import type { Fenced, GuardableHold, Guard, GuardOptions, OpenOptions, PruneLocks, Pruned } from '@leasehold/fence'
import { guardSql } from '@leasehold/fence/migrations'
import * as fenceMysql from '@leasehold/fence/mysql'
import * as fencePg from '@leasehold/fence/pg'
import * as fencePostgresJs from '@leasehold/fence/postgres-js'
import * as fenceSqlite from '@leasehold/fence/sqlite'
import { startMariadb } from '../../services/mariadb.js'
import { startPostgres } from '../../services/postgres.js'
import type { ServiceName } from '../../services/suite.js'

/** The guard of a store, as all of them are. */
export type AnyGuard = Guard<unknown> & {
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  enter(tx: never, hold: GuardableHold, options?: OpenOptions): Promise<Fenced<unknown>>
  prune(locks: PruneLocks): Promise<Pruned>
  raiseFloor(floor: bigint): Promise<Pruned>
}

export interface Row {
  readonly table: string
  readonly where: Readonly<Record<string, unknown>>
  readonly set?: Readonly<Record<string, unknown>>
}

/** One kind of store behind one driver, with a table `counter (id, n)` that also has marks on its rows. */
export interface Store {
  /** Where it listens; 0 for a store in this process. */
  readonly port: number
  readonly connections: number
  /** A guard of its own; of the n-th connection where a connection has one transaction at a time. */
  guard(options?: GuardOptions & { attempts?: number }, connection?: number): AnyGuard
  /** A guard over another port that leads to this store, and the end of its connections. */
  guardAt?(port: number): { guard: AnyGuard; fencedUpdate: Store['fencedUpdate']; end(): Promise<void> }
  fencedUpdate(hold: GuardableHold, row: Row, connection?: number): Promise<Record<string, unknown> | undefined>
  /** The store's own statements, in a transaction of a guard. */
  read(tx: unknown): Promise<number>
  write(tx: unknown, n: number): Promise<unknown>
  /** Any text, in a transaction of a guard. */
  raw(tx: unknown, text: string): Promise<unknown>
  /** One statement without a transaction. */
  query(text: string, connection?: number): Promise<Record<string, unknown>[]>
  /** The same for a change, which waits for other writers. */
  change(text: string, connection?: number): Promise<unknown>
  /** A transaction of the caller's own. */
  transaction<T>(body: (tx: never) => Promise<T>): Promise<T>
  stop(): Promise<void>
}

export interface Kind {
  readonly name: string
  readonly needs: ServiceName | undefined
  start(connections: number): Promise<Store>
}

const READ = 'SELECT n FROM counter WHERE id = 1'
const WRITE = 'UPDATE counter SET n = '
const CREATE = 'CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)'
const FIRST = 'INSERT INTO counter (id, n) VALUES (1, 0), (2, 0)'

const pgKind: Kind = {
  name: 'pg',
  needs: 'PostgreSQL',
  async start(connections) {
    const server = await startPostgres()
    const poolOf = (port: number, max: number) =>
      new pg.Pool({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres', max })
    const pool = poolOf(server.port, connections)
    await pool.query(guardSql('pg') + CREATE)
    await pool.query(guardSql('pg', { form: 'column', on: 'counter' }) + FIRST)
    return {
      port: server.port,
      connections,
      guard: (options) => fencePg.fence(pool, options) as unknown as AnyGuard,
      guardAt(port) {
        const other = poolOf(port, 2)
        other.on('error', () => {})
        return {
          guard: fencePg.fence(other) as unknown as AnyGuard,
          fencedUpdate: (hold, row) => fencePg.fencedUpdate(other, hold, row),
          end: () => other.end(),
        }
      },
      fencedUpdate: (hold, row) => fencePg.fencedUpdate(pool, hold, row),
      read: async (tx) => Number((await (tx as pg.PoolClient).query(READ)).rows[0].n),
      write: (tx, n) => (tx as pg.PoolClient).query(`${WRITE}$1 WHERE id = 1`, [n]),
      raw: (tx, text) => (tx as pg.PoolClient).query(text),
      query: async (text) => (await pool.query(text)).rows,
      change: (text) => pool.query(text),
      async transaction(body) {
        const client = await pool.connect()
        try {
          await client.query('BEGIN')
          const value = await body(client as never)
          await client.query('COMMIT')
          return value
        } catch (error) {
          await client.query('ROLLBACK')
          throw error
        } finally {
          client.release()
        }
      },
      async stop() {
        await pool.end()
        await server.stop()
      },
    }
  },
}

const postgresJsKind: Kind = {
  name: 'postgres.js',
  needs: 'PostgreSQL',
  async start(connections) {
    const server = await startPostgres()
    const poolOf = (port: number, max: number) =>
      postgres({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres', max, onnotice: () => {} })
    const sql = poolOf(server.port, connections)
    await sql.unsafe(guardSql('pg') + CREATE)
    await sql.unsafe(guardSql('pg', { form: 'column', on: 'counter' }) + FIRST)
    return {
      port: server.port,
      connections,
      guard: (options) => fencePostgresJs.fence(sql, options) as unknown as AnyGuard,
      guardAt(port) {
        const other = poolOf(port, 2)
        return {
          guard: fencePostgresJs.fence(other) as unknown as AnyGuard,
          fencedUpdate: (hold, row) => fencePostgresJs.fencedUpdate(other, hold, row),
          end: () => other.end({ timeout: 1 }),
        }
      },
      fencedUpdate: (hold, row) => fencePostgresJs.fencedUpdate(sql, hold, row),
      read: async (tx) => Number((await (tx as postgres.Sql).unsafe(READ))[0]?.n),
      write: async (tx, n) => await (tx as postgres.Sql)`UPDATE counter SET n = ${n} WHERE id = 1`,
      raw: async (tx, text) => await (tx as postgres.Sql).unsafe(text),
      query: async (text) => [...(await sql.unsafe(text))],
      change: async (text) => await sql.unsafe(text),
      transaction: (body) => sql.begin((tx) => body(tx as never)) as Promise<never>,
      async stop() {
        await sql.end({ timeout: 1 })
        await server.stop()
      },
    }
  },
}

/** mysql2 counts found rows unless told otherwise: both must do. */
const mysqlKind = (name: string, flags: string[]): Kind => ({
  name,
  needs: 'MariaDB',
  async start(connections) {
    const server = await startMariadb()
    const poolOf = (port: number, connectionLimit: number) =>
      mysql.createPool({ host: '127.0.0.1', port, user: 'root', database: 'test', connectionLimit, flags })
    const admin = await mysql.createConnection({ uri: server.url, multipleStatements: true })
    await admin.query(guardSql('mysql') + CREATE)
    await admin.query(guardSql('mysql', { form: 'column', on: 'counter' }) + FIRST)
    await admin.end()
    const pool = poolOf(server.port, connections)
    return {
      port: server.port,
      connections,
      guard: (options) => fenceMysql.fence(pool, options) as unknown as AnyGuard,
      guardAt(port) {
        const other = poolOf(port, 2)
        return {
          guard: fenceMysql.fence(other) as unknown as AnyGuard,
          fencedUpdate: (hold, row) => fenceMysql.fencedUpdate(other, hold, row),
          end: () => other.end(),
        }
      },
      fencedUpdate: (hold, row) => fenceMysql.fencedUpdate(pool, hold, row),
      read: async (tx) => Number(((await (tx as mysql.Connection).query(READ))[0] as { n: number }[])[0]?.n),
      write: (tx, n) => (tx as mysql.Connection).execute(`${WRITE}? WHERE id = 1`, [n]),
      raw: (tx, text) => (tx as mysql.Connection).query(text),
      query: async (text) => (await pool.query(text))[0] as Record<string, unknown>[],
      change: (text) => pool.query(text),
      async transaction(body) {
        const connection = await pool.getConnection()
        try {
          await connection.beginTransaction()
          const value = await body(connection as never)
          await connection.commit()
          return value
        } catch (error) {
          await connection.rollback()
          throw error
        } finally {
          connection.release()
        }
      },
      async stop() {
        await pool.end()
        await server.stop()
      },
    }
  },
})

const sqliteKind: Kind = {
  name: 'libsql',
  needs: undefined,
  async start(connections) {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-guards-'))
    const dbs = Array.from({ length: connections }, () => new Database(join(folder, 'counter.sqlite')))
    const at = (connection = 0) => dbs[connection % dbs.length] as Database.Database
    at().exec('PRAGMA journal_mode = WAL')
    for (const db of dbs) db.exec('PRAGMA synchronous = OFF')
    at().exec(guardSql('sqlite') + CREATE)
    at().exec(guardSql('sqlite', { form: 'column', on: 'counter' }) + FIRST)
    const guards = new Map<number, AnyGuard>()
    return {
      port: 0,
      connections,
      guard(options, connection = 0) {
        const made = guards.get(connection) ?? (fenceSqlite.fence(at(connection)) as unknown as AnyGuard)
        guards.set(connection, made)
        return options === undefined ? made : (fenceSqlite.fence(at(connection), options) as unknown as AnyGuard)
      },
      fencedUpdate: async (hold, row, connection) => fenceSqlite.fencedUpdate(at(connection), hold, row),
      read: async (tx) => Number(((tx as Database.Database).prepare(READ).get() as { n: number }).n),
      write: async (tx, n) => (tx as Database.Database).prepare(`${WRITE}? WHERE id = 1`).run(n),
      raw: async (tx, text) => (tx as Database.Database).exec(text),
      query: async (text, connection) => at(connection).prepare(text).all() as Record<string, unknown>[],
      async change(text, connection) {
        for (const end = performance.now() + 5_000; ; await new Promise((resolve) => setTimeout(resolve, 1))) {
          try {
            return at(connection).exec(text)
          } catch (error) {
            if (!String(error).includes('locked') || performance.now() > end) throw error
          }
        }
      },
      async transaction(body) {
        at().exec('BEGIN IMMEDIATE')
        try {
          const value = await body(at() as never)
          at().exec('COMMIT')
          return value
        } catch (error) {
          if (at().inTransaction) at().exec('ROLLBACK')
          throw error
        }
      },
      async stop() {
        for (const db of dbs) db.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}

export const KINDS: readonly Kind[] = [
  pgKind,
  postgresJsKind,
  mysqlKind('mysql2', []),
  mysqlKind('mysql2, counting changed rows', ['-FOUND_ROWS']),
  sqliteKind,
]
