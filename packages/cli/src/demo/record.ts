import { readFile, writeFile } from 'node:fs/promises'
import { InvalidError } from '@leasehold/core'
import { fence } from '@leasehold/fence/fs'
import { guardSql } from '@leasehold/fence/migrations'
import type { Client } from 'pg'
import type { StorePlace } from './model.js'

/** The one record of the demo. */
export const RECORD_ID = 'invoice-42'

/** Creates the record, and the tables of the guard in PostgreSQL. */
export async function createRecord(place: StorePlace, total: number): Promise<void> {
  if (place.kind === 'pg') {
    await onPostgres(place, async (client) => {
      await client.query(`CREATE SCHEMA ${place.schema}`)
      await client.query(guardSql('pg'))
      await client.query('CREATE TABLE invoice (id text PRIMARY KEY, total bigint NOT NULL)')
      await client.query('INSERT INTO invoice (id, total) VALUES ($1, $2)', [RECORD_ID, total])
    })
    return
  }
  await writeFile(place.file, String(total))
}

export async function readRecord(place: StorePlace): Promise<number> {
  if (place.kind === 'pg') {
    return await onPostgres(place, async (client) => {
      const { rows } = await client.query('SELECT total FROM invoice WHERE id = $1', [RECORD_ID])
      return Number(rows[0].total)
    })
  }
  const version = await fence(place.file).latest()
  return version === null ? await readPlainFile(place.file) : Number(new TextDecoder().decode(version))
}

/** Reads the number in a plain file. */
export async function readPlainFile(file: string): Promise<number> {
  return Number(await readFile(file, 'utf8'))
}

/** Drops the schema. A file is deleted together with the folder of the demo. */
export async function dropRecord(place: StorePlace): Promise<void> {
  if (place.kind !== 'pg') return
  await onPostgres(place, async (client) => {
    await client.query(`DROP SCHEMA IF EXISTS ${place.schema} CASCADE`)
  })
}

/** Loads the driver of PostgreSQL, which the user installs. @throws InvalidError */
export async function postgresDriver(): Promise<typeof import('pg')> {
  try {
    return (await import('pg')).default as unknown as typeof import('pg')
  } catch (cause) {
    throw new InvalidError('the package pg is not installed', { cause, hint: 'npm install pg' })
  }
}

async function onPostgres<T>(
  place: Extract<StorePlace, { kind: 'pg' }>,
  body: (client: Client) => Promise<T>,
): Promise<T> {
  const { Client } = await postgresDriver()
  const client = new Client({ connectionString: place.url, options: `-c search_path=${place.schema}` })
  await client.connect()
  try {
    return await body(client)
  } finally {
    await client.end()
  }
}
