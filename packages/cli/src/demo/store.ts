import * as nodeFs from 'node:fs/promises'
import type { Pool, PoolClient } from 'pg'
import type { Hold } from 'leasehold'
import { postgresDriver, readPlainFile, RECORD_ID } from './record.js'
import type { StorePlace } from './model.js'

/** The record. `write` calls `sending` after every local check, right before the write leaves the process. */
export interface Store {
  read(hold: Hold): Promise<number>
  write(hold: Hold, total: number, sending: () => void): Promise<void>
  close(): Promise<void>
}

export function openStore(place: StorePlace, guarded: boolean): Promise<Store> {
  return place.kind === 'pg' ? postgresStore(place, guarded) : fileStore(place.file, guarded)
}

/** The record in a file: overwritten without a guard, and written as a new version beside it with one. */
async function fileStore(file: string, guarded: boolean): Promise<Store> {
  const close = async () => {}
  if (!guarded) {
    return {
      read: () => readPlainFile(file),
      async write(hold, total, sending) {
        hold.assertHeld()
        sending()
        await nodeFs.writeFile(file, String(total))
      },
      close,
    }
  }
  const { fence } = await import('@leasehold/fence/fs')
  return {
    async read(hold) {
      const version = await fence(file).read(hold)
      return version === null ? await readPlainFile(file) : Number(new TextDecoder().decode(version))
    },
    write: (hold, total, sending) =>
      fence(file, { fs: announcing(nodeFs, 'readdir', sending) }).write(hold, String(total)),
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

/** Returns a pool whose next connection calls `announce` before its first query, the BEGIN of the guard. */
function announcingPool(pool: Pool, announce: () => void): { connect(): Promise<PoolClient> } {
  return { connect: async () => announcing(await pool.connect(), 'query', announce) }
}

/** Returns a proxy of `target` that calls `announce` before the first call of `method`. */
function announcing<T extends object>(target: T, method: keyof T, announce: () => void): T {
  let announced = false
  return new Proxy(target, {
    get(object, property) {
      const value: unknown = Reflect.get(object, property, object)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (property === method && !announced) {
          announced = true
          announce()
        }
        return Reflect.apply(value, object, args)
      }
    },
  })
}
