import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import Database from 'libsql'
import mysql from 'mysql2/promise'
import pg from 'pg'
import postgres from 'postgres'
import { handHeld } from '@leasehold/fence'
import { guardSql } from '@leasehold/fence/migrations'
import * as fenceMysql from '@leasehold/fence/mysql'
import * as fencePg from '@leasehold/fence/pg'
import * as fencePostgresJs from '@leasehold/fence/postgres-js'
import * as fenceRedis from '@leasehold/fence/redis'
import * as fenceSqlite from '@leasehold/fence/sqlite'
import { findMariadb, startMariadb } from '../../tests/services/mariadb.js'
import { findPostgres, startPostgres } from '../../tests/services/postgres.js'
import { findRedis, startRedis } from '../../tests/services/redis.js'
import { cpuMs } from '../harness/cpu-time.js'
import { measure, medianRound, type Round, rounded } from '../harness/closed-loop.js'

const IN_FLIGHT = 16

/** The same write, without a guard and with it, by task number `task`. */
interface Pair {
  readonly store: string
  readonly write: string
  readonly plain: (task: number) => Promise<unknown>
  readonly fenced: (task: number) => Promise<unknown>
}

interface Bench {
  /** The server's process; undefined for a store in this process. */
  readonly pid?: number
  readonly pairs: readonly Pair[]
  stop(): Promise<void>
}

const holds = Array.from({ length: IN_FLIGHT }, (_, task) => handHeld(`counter/${task}`, '33'))
const holdOf = (task: number) => holds[task] as (typeof holds)[0]
const ROWS = `INSERT INTO counter (id, n) VALUES ${holds.map((_, id) => `(${id}, 0)`).join(', ')}`
const CREATE = 'CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)'
let n = 0
const row = (id: number) => ({ table: 'counter', where: { id }, set: { n: n++ } })

async function postgresBench(): Promise<Bench> {
  const server = await startPostgres({ fsync: true })
  const pool = new pg.Pool({ connectionString: server.url, max: IN_FLIGHT })
  const sql = postgres(server.url, { max: IN_FLIGHT, onnotice: () => {} })
  await pool.query(guardSql('pg') + CREATE)
  await pool.query(guardSql('pg', { form: 'column', on: 'counter' }) + ROWS)
  const [guard, guardJs] = [fencePg.fence(pool), fencePostgresJs.fence(sql)]
  const UPDATE = 'UPDATE counter SET n = $2 WHERE id = $1 RETURNING *'
  const update = (id: number, tx: pg.Pool | pg.PoolClient) => tx.query(UPDATE, [id, n++])
  const plain = async (id: number) => {
    const client = await pool.connect()
    await client.query('BEGIN')
    await update(id, client)
    await client.query('COMMIT')
    client.release()
  }
  const pairs: Pair[] = [
    {
      store: 'PostgreSQL, pg',
      write: 'transaction, guard table',
      plain,
      fenced: (id) => guard.with(holdOf(id), (tx) => update(id, tx as pg.PoolClient)),
    },
    {
      store: 'PostgreSQL, pg',
      write: 'one statement, column',
      plain: (id) => update(id, pool),
      fenced: (id) => fencePg.fencedUpdate(pool, holdOf(id), row(id)),
    },
    {
      store: 'PostgreSQL, postgres.js',
      write: 'transaction, guard table',
      plain: (id) => sql.begin((tx) => tx`UPDATE counter SET n = ${n++} WHERE id = ${id} RETURNING *`),
      fenced: (id) => guardJs.with(holdOf(id), (tx) => tx`UPDATE counter SET n = ${n++} WHERE id = ${id} RETURNING *`),
    },
    {
      store: 'PostgreSQL, postgres.js',
      write: 'one statement, column',
      plain: async (id) => await sql.unsafe(UPDATE, [id, n++]),
      fenced: (id) => fencePostgresJs.fencedUpdate(sql, holdOf(id), row(id)),
    },
  ]
  const stop = async () => {
    await pool.end()
    await sql.end()
    await server.stop()
  }
  return { pairs, stop, pid: server.pid }
}

async function mariadbBench(): Promise<Bench> {
  const server = await startMariadb({ fsync: true })
  const admin = await mysql.createConnection({ uri: server.url, multipleStatements: true })
  await admin.query(guardSql('mysql') + CREATE)
  await admin.query(guardSql('mysql', { form: 'column', on: 'counter' }) + ROWS)
  await admin.end()
  const pool = mysql.createPool({ uri: server.url, connectionLimit: IN_FLIGHT })
  const guard = fenceMysql.fence(pool)
  const update = (id: number, tx: mysql.Pool | mysql.Connection) =>
    tx.query('UPDATE counter SET n = ? WHERE id = ?', [n++, id])
  const plain = async (id: number) => {
    const connection = await pool.getConnection()
    await connection.query('START TRANSACTION')
    await update(id, connection)
    await connection.query('COMMIT')
    connection.release()
  }
  const pairs: Pair[] = [
    {
      store: 'MariaDB, mysql2',
      write: 'transaction, guard table',
      plain,
      fenced: (id) => guard.with(holdOf(id), (tx) => update(id, tx)),
    },
    {
      store: 'MariaDB, mysql2',
      write: 'one statement, column',
      plain: (id) => update(id, pool),
      fenced: (id) => fenceMysql.fencedUpdate(pool, holdOf(id), row(id)),
    },
  ]
  const stop = async () => {
    await pool.end()
    await server.stop()
  }
  return { pairs, stop, pid: server.pid }
}

async function sqliteBench(): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-sqlite-'))
  const db = new Database(join(folder, 'counter.sqlite'))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec(guardSql('sqlite') + CREATE)
  db.exec(guardSql('sqlite', { form: 'column', on: 'counter' }) + ROWS)
  const guard = fenceSqlite.fence(db)
  const update = (id: number) => db.prepare('UPDATE counter SET n = ? WHERE id = ? RETURNING *').all(n++, id)
  const plain = async (id: number) => {
    db.exec('BEGIN IMMEDIATE')
    update(id)
    db.exec('COMMIT')
  }
  const pairs: Pair[] = [
    {
      store: 'SQLite, libsql',
      write: 'transaction, guard table',
      plain,
      fenced: (id) => guard.with(holdOf(id), () => update(id)),
    },
    {
      store: 'SQLite, libsql',
      write: 'one statement, column',
      plain: async (id) => update(id),
      fenced: async (id) => fenceSqlite.fencedUpdate(db, holdOf(id), row(id)),
    },
  ]
  const stop = async () => {
    db.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { pairs, stop }
}

async function redisBench(): Promise<Bench> {
  const server = await startRedis({ appendfsync: 'everysec' })
  const redis = new Redis(server.url)
  const guard = fenceRedis.fence(redis)
  const pairs: Pair[] = [
    {
      store: 'Redis, ioredis',
      write: 'SET',
      plain: (id) => redis.set(`plain/${id}`, String(n++)),
      fenced: (id) => guard.set(holdOf(id), String(n++)),
    },
  ]
  const stop = async () => {
    redis.disconnect()
    await server.stop()
  }
  return { pairs, stop, pid: server.pid }
}

const BENCHES: readonly { name: string; present: () => unknown; start: () => Promise<Bench> }[] = [
  { name: 'PostgreSQL', present: findPostgres, start: postgresBench },
  { name: 'MariaDB', present: findMariadb, start: mariadbBench },
  { name: 'SQLite', present: () => true, start: sqliteBench },
  { name: 'Redis', present: findRedis, start: redisBench },
]

/** What a fenced write costs beside the same write unfenced, at 16 in flight: rounds of both by turns, medians, and their ratio. */
export async function guards({ rounds, seconds }: { rounds: number; seconds: number }): Promise<void> {
  for (const { name, present, start } of BENCHES) {
    if (present() === undefined) {
      process.stderr.write(`${name} is not installed: left out\n`)
      continue
    }
    const bench = await start()
    try {
      for (const pair of bench.pairs) console.log(JSON.stringify(await compare(pair, bench.pid, { rounds, seconds })))
    } finally {
      await bench.stop()
    }
  }
}

/** One round, and the processor time of client and server for an operation of it. */
async function roundOf(pair: Pair, body: (task: number) => Promise<unknown>, pid: number | undefined, seconds: number) {
  const subject = {
    system: pair.store,
    async pair(task: number) {
      const start = performance.now()
      await body(task)
      return performance.now() - start
    },
  }
  const before = cpuMs(pid)
  const round = await measure(subject, IN_FLIGHT, seconds)
  const after = cpuMs(pid)
  const spent = before === undefined || after === undefined ? Number.NaN : after - before
  return { round, cpuPerOp: spent / round.opsPerSecond }
}

async function compare(pair: Pair, pid: number | undefined, { rounds, seconds }: { rounds: number; seconds: number }) {
  const plain: Awaited<ReturnType<typeof roundOf>>[] = []
  const fenced: typeof plain = []
  for (let i = 0; i < rounds; i++) {
    plain.push(await roundOf(pair, pair.plain, pid, seconds))
    fenced.push(await roundOf(pair, pair.fenced, pid, seconds))
  }
  const without = medianRound(plain.map(({ round }) => round))
  const withGuard = medianRound(fenced.map(({ round }) => round))
  // Of neighbours in time, since the rest of the machine is not always the same.
  const ratio = (of: (one: { round: Round; cpuPerOp: number }) => number) =>
    Number(median(fenced.map((one, i) => of(one) / of(plain[i] as typeof one))).toFixed(2))
  return {
    workload: 'guards',
    store: pair.store,
    write: pair.write,
    inFlight: IN_FLIGHT,
    opsPerSecond: rounded(withGuard.opsPerSecond),
    p50Ms: withGuard.p50Ms,
    p99Ms: withGuard.p99Ms,
    unfencedOpsPerSecond: rounded(without.opsPerSecond),
    unfencedP50Ms: without.p50Ms,
    ratio: ratio(({ round }) => 1 / round.opsPerSecond),
    ratioP50: ratio(({ round }) => round.p50Ms),
    ratioCpu: ratio(({ cpuPerOp }) => cpuPerOp),
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number
}
