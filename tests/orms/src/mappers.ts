import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PrismaPg } from '@prisma/adapter-pg'
import { eq, sql as drizzleSql } from 'drizzle-orm'
import * as pgCore from 'drizzle-orm/pg-core'
import * as mysqlCore from 'drizzle-orm/mysql-core'
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import knexOf, { type Knex } from 'knex'
import { Kysely, MysqlDialect, PostgresDialect } from 'kysely'
import { createPool as createMysqlPool } from 'mysql2'
import mysql from 'mysql2/promise'
import pg from 'pg'
import postgres from 'postgres'
import type { Fenced, GuardableHold, OpenOptions } from '@leasehold/fence'
import * as fenceDrizzle from '@leasehold/fence/drizzle'
import * as fenceKnex from '@leasehold/fence/knex'
import * as fenceKysely from '@leasehold/fence/kysely'
import * as fencePrisma from '@leasehold/fence/prisma'

/** A guard on top of a mapper, with what the tests do through it: all in the mapper's own words. */
export interface Mapped<Tx = never> {
  readonly guard: {
    with<T>(hold: GuardableHold, body: (tx: Fenced<Tx>) => Promise<T>): Promise<T>
    enter(tx: Tx, hold: GuardableHold, options?: OpenOptions): Promise<unknown>
    open(hold: GuardableHold): Promise<void>
  }
  /** The mapper itself, where it should be a transaction. */
  readonly outside: Tx
  transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>
  read(tx: Tx): Promise<number>
  write(tx: Tx, n: number): Promise<unknown>
  end(): Promise<unknown>
}

export interface MapperKind {
  readonly name: string
  readonly database: 'pg' | 'mysql'
  make(url: string): Promise<Mapped>
}

/** Hides the types of one mapper from the suite that runs over all of them. */
const hidden = <Tx>(mapped: Mapped<Tx>): Mapped => mapped as unknown as Mapped

const pgCounter = pgCore.pgTable('counter', {
  id: pgCore.integer().primaryKey(),
  n: pgCore.bigint({ mode: 'number' }).notNull(),
})
const mysqlCounter = mysqlCore.mysqlTable('counter', {
  id: mysqlCore.int().primaryKey(),
  n: mysqlCore.bigint({ mode: 'number' }).notNull(),
})

interface Schema {
  counter: { id: number; n: number }
}

/** What of Prisma's client is used here: its own types are there only after it was generated. */
interface PrismaTx extends fencePrisma.PrismaTransaction {
  readonly counter: {
    findUniqueOrThrow(query: { where: { id: number } }): Promise<{ n: bigint }>
    update(query: { where: { id: number }; data: { n: number } }): Promise<unknown>
  }
}

interface PrismaClient extends PrismaTx {
  $transaction<T>(body: (tx: PrismaTx) => Promise<T>): Promise<T>
  $disconnect(): Promise<void>
}

/** Prisma's client is generated from the schema: into its package, which is read only after that. */
export async function generatedClient() {
  // Prisma would download a program for migrations, which nothing here needs.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', DATABASE_URL: 'postgres://localhost/none' }
  const program = fileURLToPath(new URL('../node_modules/prisma/build/index.js', import.meta.url))
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  await promisify(execFile)(process.execPath, [program, 'generate', '--no-hints'], { cwd, env, timeout: 150_000 })
  const generated = (await import('@prisma/client')) as unknown as {
    PrismaClient: new (options: { adapter: PrismaPg }) => PrismaClient
  }
  return generated.PrismaClient
}

export const MAPPERS: readonly MapperKind[] = [
  {
    name: 'Drizzle on node-postgres',
    database: 'pg',
    async make(url) {
      const pool = new pg.Pool({ connectionString: url })
      const db = drizzlePg(pool)
      type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
      return hidden<Tx>({
        guard: fenceDrizzle.fence(db),
        outside: db as unknown as Tx,
        transaction: (body) => db.transaction(body),
        read: async (tx) => (await tx.select().from(pgCounter).where(eq(pgCounter.id, 1)))[0]?.n ?? Number.NaN,
        write: (tx, n) => tx.update(pgCounter).set({ n }).where(eq(pgCounter.id, 1)),
        end: () => pool.end(),
      })
    },
  },
  {
    name: 'Drizzle on postgres.js',
    database: 'pg',
    async make(url) {
      const sql = postgres(url, { onnotice: () => {} })
      const db = drizzlePostgresJs(sql)
      type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
      return hidden<Tx>({
        guard: fenceDrizzle.fence(db, { transaction: { isolationLevel: 'repeatable read' } }),
        outside: db as unknown as Tx,
        transaction: (body) => db.transaction(body),
        read: async (tx) => (await tx.select().from(pgCounter).where(eq(pgCounter.id, 1)))[0]?.n ?? Number.NaN,
        write: (tx, n) => tx.update(pgCounter).set({ n }).where(drizzleSql`id = 1`),
        end: () => sql.end(),
      })
    },
  },
  {
    name: 'Drizzle on mysql2',
    database: 'mysql',
    async make(url) {
      const pool = mysql.createPool(url)
      const db = drizzleMysql(pool)
      type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
      return hidden<Tx>({
        guard: fenceDrizzle.fence(db, { database: 'mysql' }),
        outside: db as unknown as Tx,
        transaction: (body) => db.transaction(body),
        read: async (tx) => (await tx.select().from(mysqlCounter).where(eq(mysqlCounter.id, 1)))[0]?.n ?? Number.NaN,
        write: (tx, n) => tx.update(mysqlCounter).set({ n }).where(eq(mysqlCounter.id, 1)),
        end: () => pool.end(),
      })
    },
  },
  ...(['pg', 'mysql'] as const).map(
    (database): MapperKind => ({
      name: `Kysely on ${database}`,
      database,
      async make(url) {
        const dialect =
          database === 'pg'
            ? new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) })
            : new MysqlDialect({ pool: createMysqlPool(url) })
        const db = new Kysely<Schema>({ dialect })
        type Tx = Parameters<Parameters<ReturnType<typeof db.transaction>['execute']>[0]>[0]
        return hidden<Tx>({
          guard: fenceKysely.fence(db, { database }),
          outside: db as unknown as Tx,
          transaction: (body) => db.transaction().execute(body),
          read: async (tx) =>
            Number((await tx.selectFrom('counter').select('n').where('id', '=', 1).executeTakeFirstOrThrow()).n),
          write: (tx, n) => tx.updateTable('counter').set({ n }).where('id', '=', 1).execute(),
          end: () => db.destroy(),
        })
      },
    }),
  ),
  ...(['pg', 'mysql'] as const).map(
    (database): MapperKind => ({
      name: `Knex on ${database}`,
      database,
      async make(url) {
        const knex = knexOf({ client: database === 'pg' ? 'pg' : 'mysql2', connection: url })
        return hidden<Knex.Transaction>({
          guard: fenceKnex.fence<Knex.Transaction>(knex, { database }),
          outside: knex as unknown as Knex.Transaction,
          transaction: (body) => knex.transaction(body),
          read: async (trx) => Number((await trx('counter').where({ id: 1 }).first('n')).n),
          write: async (trx, n) => await trx('counter').where({ id: 1 }).update({ n }),
          end: () => knex.destroy(),
        })
      },
    }),
  ),
  {
    name: 'Prisma on pg',
    database: 'pg',
    async make(url) {
      const Client = await generatedClient()
      const prisma = new Client({ adapter: new PrismaPg({ connectionString: url }) })
      return hidden<PrismaTx>({
        guard: fencePrisma.fence<PrismaTx>(prisma),
        outside: prisma,
        transaction: (body) => prisma.$transaction(body),
        read: async (tx) => Number((await tx.counter.findUniqueOrThrow({ where: { id: 1 } })).n),
        write: (tx, n) => tx.counter.update({ where: { id: 1 }, data: { n } }),
        end: () => prisma.$disconnect(),
      })
    },
  },
]
