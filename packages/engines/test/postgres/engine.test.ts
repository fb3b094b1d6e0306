import { createLocksOn, type Locks } from '@leasehold/client'
import {
  AccessError,
  BusyError,
  FLOOR_CLOCK_MAX_MS,
  FLOOR_CLOCK_MIN_MS,
  FLOOR_PER_MS,
  floorAt,
  InvalidError,
  LeaseholdError,
} from '@leasehold/core'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { startPostgres } from '../../../../tests/services/postgres.js'
import type { Service } from '../../../../tests/services/process.js'
import { describeWith } from '../../../../tests/services/suite.js'
import { CHECK_ENTRIES } from '../../src/postgres/applied-log.js'
import { SCHEMA_VERSION } from '../../src/postgres/sql/schema.js'
import { parsePostgresUrl, postgresEngine, postgresSql, raiseEpoch } from '../../src/postgres.js'

/** The counter in a token. */
const COUNTER = 2n ** 48n - 1n
/** The same machine: a millisecond is rounded. */
const CLOCKS_DIFFER = 5 * FLOOR_PER_MS

describeWith('PostgreSQL', 'the engine on PostgreSQL', () => {
  let server: Service
  let pool: pg.Pool
  let schemas = 0
  const open: Locks[] = []

  beforeAll(async () => {
    server = await startPostgres()
    pool = new pg.Pool({ connectionString: server.url, max: 4 })
  })
  afterEach(async () => {
    for (const locks of open.splice(0)) await locks.close()
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  const place = (more = '') => `${server.url}?schema=s${++schemas}${more}`
  const client = async (url: string, connectTimeout: '4s' | '30s' = '30s'): Promise<Locks> => {
    const locks = createLocksOn(await postgresEngine(url), { connectTimeout })
    open.push(locks)
    return locks
  }
  const schemaOf = (url: string) => parsePostgresUrl(url).schema
  const count = async (sql: string) => Number((await pool.query(`SELECT count(*) AS n FROM ${sql}`)).rows[0].n)

  /** Connections of the previous test may take a moment to end. */
  const connections = () => count("pg_stat_activity WHERE application_name = 'leasehold'")

  it('creates its tables, and gives growing tokens to clients that know nothing of each other', async () => {
    const url = place()
    const [one, two] = [await client(url), await client(url)]
    const [a, b] = await Promise.all([one.acquire('a'), two.acquire('b')])
    await expect(two.acquire('a', { wait: 0 })).rejects.toBeInstanceOf(BusyError)
    const waiting = two.acquire('a')
    await a.release()
    const next = await waiting
    expect(next.token).toBeGreaterThan(a.token)
    expect((await one.query({})).held.map(({ id }) => id).sort()).toEqual([b.id, next.id].sort())
  })

  it('takes two connections for a hundred locks', async () => {
    const url = place()
    const locks = await client(url)
    await Promise.all(Array.from({ length: 100 }, (_, i) => locks.acquire(`many/${i}`)))
    await expect.poll(connections).toBe(2)
    await expect.poll(() => count("pg_locks WHERE locktype = 'advisory'")).toBe(0)
  })

  it('polls when LISTEN is not possible, as behind a pooler', async () => {
    const url = place('&listen=off')
    const [one, two] = [await client(url), await client(url)]
    const held = await one.acquire('a')
    const waiting = two.acquire('a')
    await held.release()
    expect((await waiting).token).toBeGreaterThan(held.token)
    await expect.poll(connections).toBe(2)
  })

  it('names the missing migration when it may not create the schema', async () => {
    const url = place()
    await pool.query('CREATE ROLE guest LOGIN')
    const guest = (await client(url.replace('postgres@', 'guest@'))).connect()
    const error = await guest.catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(AccessError)
    expect(String((error as LeaseholdError).hint)).toContain(`CREATE SCHEMA IF NOT EXISTS "${schemaOf(url)}"`)
    const never = await client(`${url}&migrate=never`)
    await expect(never.connect()).rejects.toBeInstanceOf(InvalidError)
    await pool.query(postgresSql({ schema: schemaOf(url), epoch: 7 }))
    await pool.query(postgresSql({ schema: schemaOf(url) }))
    const hold = await never.acquire('a')
    expect(hold.token >> 48n).toBe(7n)
  })

  it('refuses tables of another version', async () => {
    const url = place()
    await (await client(url)).connect()
    await pool.query(`UPDATE ${schemaOf(url)}.head SET version = 99`)
    await expect((await client(url)).connect()).rejects.toMatchObject({ code: 'mismatch' })
  })

  it('works in a database whose transactions are serializable by default', async () => {
    const url = place('&options=-c%20default_transaction_isolation%3Dserializable')
    const [one, two] = [await client(url), await client(url)]
    const turns = async (locks: Locks) => {
      const tokens: bigint[] = []
      for (let i = 0; i < 10; i++) await locks.request('a', (hold) => tokens.push(hold.token))
      return tokens
    }
    const tokens = (await Promise.all([turns(one), turns(two)])).flat()
    expect(new Set(tokens).size).toBe(20)
  })

  it('writes snapshots, forgets old entries, and starts from what is left', async () => {
    const url = place()
    const S = schemaOf(url)
    const one = await client(url)
    const hold = await one.acquire('kept', { persistent: true })
    for (let round = 1; round <= 5; round++) await grow(S, round * CHECK_ENTRIES - 1, one)
    expect(await count(`${S}.snapshot`)).toBe(2)
    expect(await count(`${S}.log WHERE index < 1000`)).toBe(0)
    const two = await client(url)
    expect((await two.query({})).held.map(({ id }) => id)).toEqual([hold.id])
  })

  /** Lets the log grow up to `index` by entries without commands, and `locks` go beyond that. */
  async function grow(S: string, index: number, locks: Locks): Promise<void> {
    await pool.query(`DO $$
      DECLARE h ${S}.head;
      BEGIN LOOP
        SELECT * INTO h FROM ${S}.head;
        EXIT WHEN h.index >= ${index};
        PERFORM ${S}.append(${SCHEMA_VERSION}, h.index, h.nonce, h.epoch, 0, h.index + 5, '\\x00', false, '', 0, '');
      END LOOP; END $$`)
    await locks.register('r').put('x', { ifVersion: (await locks.register('r').get())?.version ?? 0n })
    await locks.query({})
  }

  it('stops a client whose state differs from that of the others', async () => {
    const url = place()
    const S = schemaOf(url)
    const one = await client(url, '4s')
    await one.connect()
    await grow(S, CHECK_ENTRIES, one)
    await pool.query(`UPDATE ${S}.head SET checked_index = ${CHECK_ENTRIES}, checked_hash = 'another'`)
    const error = await one.acquire('a', { wait: '4s' }).catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(LeaseholdError)
    expect(String((error as LeaseholdError).message) + String((error as Error).cause)).toContain('elsewhere')
  })

  it('begins a new epoch by command: old holds are lost, later tokens are greater', async () => {
    const url = place()
    const one = await client(url)
    const hold = await one.acquire('a')
    expect(await raiseEpoch(url, 5)).toEqual({ before: 1 })
    await expect(raiseEpoch(url, 5)).rejects.toBeInstanceOf(InvalidError)
    expect((await hold.lost)?.reason).toBe('epoch-changed')
    const next = await one.acquire('a')
    expect(next.token >> 48n).toBe(5n)
    expect(next.token).toBeGreaterThan(hold.token)
  })

  // What a failover does: what the last entry was written by is no longer the present server.
  for (const [what, change] of [
    ['timeline', "timeline = '000000FF'"],
    ['system identifier', "system = '1'"],
    ['head table', 'home = 1'],
  ] as const) {
    it(`begins a new epoch, with a floor, when the ${what} is another one`, async () => {
      const url = place()
      const one = await client(url)
      const hold = await one.acquire('a')
      await pool.query(`UPDATE ${schemaOf(url)}.head SET ${change}`)
      const before = floorAt(Date.now()) as number
      const next = await one.acquire('b')
      expect(next.token >> 48n).toBe(2n)
      expect(Number(next.token & COUNTER)).toBeGreaterThan(before - CLOCKS_DIFFER)
      expect(hold.state).toBe('lost')
      // Once: what is there now is stored.
      await next.release()
      expect((await one.acquire('b')).token >> 48n).toBe(2n)
    })
  }

  it('raises the floor, not the epoch, after another start of the server: holds stay, and nothing is granted below it', async () => {
    const url = place()
    const S = schemaOf(url)
    const [one, two] = [await client(url), await client(url)]
    const dead = await postgresEngine(url)
    const session = await dead.openSession({ ttlMs: 2_000, client: 'dead', timeoutMs: 5_000 })
    const acquire = { locks: [{ name: 'b', mode: 'exclusive' }], waitMs: 0, lockDelayMs: 0, persistent: false } as const
    await session.acquire({ ...acquire, portable: false, data: new Uint8Array() })
    await dead.close()
    const kept = await one.acquire('a', { ttl: '60s' })
    const waiting = two.acquire('b', { ttl: '60s' })
    await expect.poll(async () => (await one.query({})).pending.length).toBe(1)
    // So far in the past that the floor is above everything; the dead session ends with the entry that notices the start.
    await pool.query(`UPDATE ${S}.head SET started = started - interval '1 hour', clock = clock - interval '1 hour'`)
    const before = floorAt(Date.now()) as number
    const next = await waiting
    expect(next.token >> 48n).toBe(1n)
    expect(Number(next.token & COUNTER)).toBeGreaterThan(before - CLOCKS_DIFFER)
    expect(kept.state).toBe('held')
    await next.release()
    await one.acquire('c')
    expect(await count(`${S}.log WHERE floor IS NOT NULL`)).toBe(1)
  })

  it('delays the floor while the clock of the server is implausible, and warns', async () => {
    const url = place()
    const S = schemaOf(url)
    const says = vi.spyOn(console, 'error').mockImplementation(() => {})
    const one = await client(url)
    await one.acquire('a')
    const { rows } = await pool.query(`SELECT pg_get_functiondef('${S}.floor'::regproc) AS sql`)
    await pool.query(`CREATE OR REPLACE FUNCTION ${S}.floor() RETURNS bigint LANGUAGE sql AS 'SELECT NULL::bigint'`)
    await pool.query(`UPDATE ${S}.head SET started = started - interval '1 hour'`)
    await (await client(url)).acquire('b')
    expect(await count(`${S}.log WHERE floor IS NOT NULL`)).toBe(0)
    expect(String(says.mock.calls[0]?.[0])).toContain('implausible')
    await pool.query(rows[0].sql)
    await one.acquire('c')
    expect(await count(`${S}.log WHERE floor IS NOT NULL`)).toBe(1)
    says.mockRestore()
  })

  it('initializes no service with an implausible clock, unless an epoch is given', async () => {
    const late = (sql: string) => sql.replaceAll(String(FLOOR_CLOCK_MIN_MS), String(FLOOR_CLOCK_MAX_MS - 1))
    const S = schemaOf(place())
    await expect(pool.query(late(postgresSql({ schema: S })))).rejects.toMatchObject({ code: 'LH005' })
    expect(await count(`pg_namespace WHERE nspname = '${S}'`)).toBe(0)
    await pool.query(late(postgresSql({ schema: S, epoch: 3 })))
    expect(await count(`${S}.head WHERE first_epoch = 3 AND first_floor = 0`)).toBe(1)
  })

  it('names the missing rights of a role that cannot identify the server, and works', async () => {
    const url = place()
    const S = schemaOf(url)
    await (await client(url)).connect()
    const functions = 'pg_control_system(), pg_current_wal_lsn()'
    await pool.query(`CREATE ROLE blind LOGIN; REVOKE EXECUTE ON FUNCTION ${functions} FROM PUBLIC; GRANT USAGE ON SCHEMA ${S} TO blind;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${S} TO blind`)
    const says = vi.spyOn(console, 'error').mockImplementation(() => {})
    try {
      const blind = await client(url.replace('postgres@', 'blind@'))
      await blind.request('a', () => {})
      // Not again with each connection.
      await pool.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'blind'")
      await blind.request('a', () => {})
      expect(says.mock.calls.length).toBe(1)
      const [message, hint] = says.mock.calls[0] as [string, string]
      expect(message).toContain('pg_current_wal_lsn(), pg_walfile_name(pg_lsn), pg_control_system()')
      const grant = /^(GRANT [^;]+);/.exec(hint)?.[1]
      await pool.query(grant as string)
      await (await client(url.replace('postgres@', 'blind@'))).request('a', () => {})
      expect(says.mock.calls.length).toBe(1)
    } finally {
      says.mockRestore()
      await pool.query(`GRANT EXECUTE ON FUNCTION ${functions} TO PUBLIC`)
    }
  })

  it('starts from a log in which several epochs began', async () => {
    const url = place()
    await (await client(url)).acquire('a')
    for (const epoch of [2, 3, 4]) await raiseEpoch(url, epoch)
    const hold = await (await client(url)).acquire('a')
    expect(hold.token >> 48n).toBe(4n)
  })

  it('begins a new epoch when the database has lost what was acknowledged', async () => {
    const url = place()
    const S = schemaOf(url)
    const one = await client(url)
    const before = await one.acquire('a')
    const { rows } = await pool.query(`SELECT index, nonce FROM ${S}.log ORDER BY index DESC LIMIT 1`)
    const lost = await one.acquire('b')
    await pool.query(`DELETE FROM ${S}.log WHERE index > ${rows[0].index}`)
    await pool.query(`UPDATE ${S}.head SET index = ${rows[0].index}, nonce = ${rows[0].nonce}`)
    const next = await one.acquire('b')
    expect(next.token).toBeGreaterThan(lost.token)
    expect([before.state, lost.state]).toEqual(['lost', 'lost'])
  })

  it('does not let a jump of the database clock end a living session', async () => {
    const url = place()
    const [one, two] = [await client(url), await client(url)]
    const hold = await one.acquire('a', { ttl: '6s' })
    await two.acquire('b', { ttl: '6s' })
    await pool.query(`UPDATE ${schemaOf(url)}.head SET clock = clock - interval '1 hour'`)
    await expect(two.acquire('a', { wait: '500ms', ttl: '6s' })).rejects.toMatchObject({ code: 'timeout' })
    expect(hold.state).toBe('held')
    await hold.release()
  })

  it('ends expired sessions of an earlier client at once', async () => {
    const url = place()
    const gone = await postgresEngine(url)
    const session = await gone.openSession({ ttlMs: 2_000, client: 'gone', timeoutMs: 5_000 })
    const acquire = { locks: [{ name: 'a', mode: 'exclusive' }], waitMs: 0, lockDelayMs: 0, persistent: false } as const
    await session.acquire({ ...acquire, portable: false, data: new Uint8Array() })
    await gone.close()
    await pool.query(`UPDATE ${schemaOf(url)}.head SET clock = clock - interval '1 hour'`)
    expect(await (await client(url)).tryAcquire('a')).not.toBeNull()
  })
})

it('reads its own part of a URL, and hides the password', () => {
  const read = parsePostgresUrl('postgres://u:secret@h:5/d?schema=locks&sslmode=require&migrate=never&listen=off')
  expect(read).toEqual({
    connectionString: 'postgres://u:secret@h:5/d?sslmode=require',
    name: 'postgres://u@h:5/d',
    schema: 'locks',
    migrate: false,
    listen: false,
    listenString: 'postgres://u:secret@h:5/d?sslmode=require',
  })
  for (const bad of [
    'mysql://h/d',
    'postgres://h/d?schema=a-b',
    'postgres://h/d?migrate=1',
    'postgres://h/d?listen=x',
  ]) {
    expect(() => parsePostgresUrl(bad)).toThrow(InvalidError)
  }
  expect(() => postgresSql({ epoch: 0 })).toThrow(InvalidError)
})
