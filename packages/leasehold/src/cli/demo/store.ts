import type { Pool, PoolClient } from 'pg'
import type { Hold } from '../../locks.js'
import { postgresDriver, RECORD_ID } from './record.js'
import type { StorePlace } from './story.js'

/** The record as a worker uses it. `sending` runs right before the write leaves the process, after every local check. */
export interface Store {
  read(hold: Hold): Promise<number>
  write(hold: Hold, total: number, sending: () => void): Promise<void>
  close(): Promise<void>
}

export function openStore(place: StorePlace, guarded: boolean): Promise<Store> {
  return place.kind === 'pg' ? postgresStore(place, guarded) : sqliteStore(place.file, guarded)
}

const BUSY_TIMEOUT_MS = 5_000

async function sqliteStore(file: string, guarded: boolean): Promise<Store> {
  const { default: Database } = await import('libsql')
  const { fence } = await import('@leasehold/fence/sqlite')
  const db = new Database(file, { timeout: BUSY_TIMEOUT_MS })
  const read = () => (db.prepare('SELECT total FROM invoice WHERE id = ?').get(RECORD_ID) as { total: number }).total
  const write = (total: number) => {
    db.prepare('UPDATE invoice SET total = ? WHERE id = ?').run(total, RECORD_ID)
  }
  const close = async () => {
    db.close()
  }
  if (!guarded) {
    return {
      read: async () => read(),
      async write(hold, total, sending) {
        hold.assertHeld()
        sending()
        write(total)
      },
      close,
    }
  }
  return {
    read: (hold) => fence(db).with(hold, () => read()),
    write: (hold, total, sending) => fence(announcing(db, 'exec', sending)).with(hold, () => write(total)),
    close,
  }
}

async function postgresStore(place: Extract<StorePlace, { kind: 'pg' }>, guarded: boolean): Promise<Store> {
  const { Pool } = await postgresDriver()
  const { fence } = await import('@leasehold/fence/pg')
  const pool = new Pool({ connectionString: place.url, options: `-c search_path=${place.schema}`, max: 1 })
  type Queries = Pick<typeof pool, 'query'>
  const read = async (on: Queries) => {
    const { rows } = await on.query('SELECT total FROM invoice WHERE id = $1', [RECORD_ID])
    return Number(rows[0].total)
  }
  const write = async (on: Queries, total: number) => {
    await on.query('UPDATE invoice SET total = $1 WHERE id = $2', [total, RECORD_ID])
  }
  const close = () => pool.end()
  if (!guarded) {
    return {
      read: () => read(pool),
      async write(hold, total, sending) {
        hold.assertHeld()
        sending()
        await write(pool, total)
      },
      close,
    }
  }
  return {
    read: (hold) => fence(pool).with(hold, (tx) => read(tx as unknown as Queries)),
    write: (hold, total, sending) =>
      fence(announcingPool(pool, sending)).with(hold, (tx) => write(tx as unknown as Queries, total)),
    close,
  }
}

/** A pool whose next connection announces its first query: the BEGIN of the guard. */
function announcingPool(pool: Pool, announce: () => void): { connect(): Promise<PoolClient> } {
  return { connect: async () => announcing(await pool.connect(), 'query', announce) }
}

/** The same object, except that the first call of `method` is announced. */
function announcing<T extends object>(target: T, method: keyof T, announce: () => void): T {
  let told = false
  return new Proxy(target, {
    get(object, property) {
      const value: unknown = Reflect.get(object, property, object)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (property === method && !told) {
          told = true
          announce()
        }
        return Reflect.apply(value, object, args)
      }
    },
  })
}
