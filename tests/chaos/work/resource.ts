import { fence, type SqliteGuard } from '@leasehold/fence/sqlite'
import { type GuardableHold, guardSql } from '@leasehold/fence'
import Database from 'libsql'

export interface Effect {
  readonly seq: number
  readonly lock: string
  readonly token: bigint
  readonly kind: 'open' | 'write'
  readonly owner: string
  readonly before: number
  readonly after: number
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS item (lock TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS effect (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, lock TEXT NOT NULL, token TEXT NOT NULL, kind TEXT NOT NULL,
  owner TEXT NOT NULL, before INTEGER NOT NULL, after INTEGER NOT NULL
);
`

/** Counters in SQLite behind a guard, with a list of every effect that the guard let through. */
export class Resource {
  readonly #db: Database.Database
  readonly #guard: SqliteGuard<Database.Database>

  constructor(file: string) {
    this.#db = new Database(file)
    this.#db.exec('PRAGMA busy_timeout = 10000')
    this.#db.exec('PRAGMA journal_mode = WAL')
    this.#db.exec('PRAGMA synchronous = NORMAL')
    this.#db.exec(guardSql('sqlite') + SCHEMA)
    this.#guard = fence(this.#db)
  }

  /** The first half of a unit of work: raises the mark and reads the counter. */
  open(hold: GuardableHold, owner: string): Promise<number> {
    const lock = hold.names[0] as string
    return this.#guard.with(hold, (db) => {
      const row = db.prepare('SELECT value FROM item WHERE lock = ?').get(lock) as { value: number } | undefined
      const value = row?.value ?? 0
      this.#note(hold, lock, owner, 'open', value, value)
      return value
    })
  }

  /** The second half: writes what was computed from what was read. */
  write(hold: GuardableHold, owner: string, before: number): Promise<void> {
    const lock = hold.names[0] as string
    return this.#guard.with(hold, (db) => {
      db.prepare('INSERT INTO item VALUES (?, ?) ON CONFLICT (lock) DO UPDATE SET value = excluded.value').run(
        lock,
        before + 1,
      )
      this.#note(hold, lock, owner, 'write', before, before + 1)
    })
  }

  effects(): Effect[] {
    const rows = this.#db.prepare('SELECT * FROM effect ORDER BY seq').all() as (Omit<Effect, 'token'> & {
      token: string
    })[]
    return rows.map((row) => ({ ...row, token: BigInt(row.token) }))
  }

  values(): Map<string, number> {
    const rows = this.#db.prepare('SELECT lock, value FROM item').all() as { lock: string; value: number }[]
    return new Map(rows.map(({ lock, value }) => [lock, value]))
  }

  close(): void {
    this.#db.close()
  }

  #note(hold: GuardableHold, lock: string, owner: string, kind: 'open' | 'write', before: number, after: number): void {
    const { token } = { token: String(hold.tokenOf(lock)) }
    this.#db
      .prepare('INSERT INTO effect (lock, token, kind, owner, before, after) VALUES (?, ?, ?, ?, ?, ?)')
      .run(lock, token, kind, owner, before, after)
  }
}
