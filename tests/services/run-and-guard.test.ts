import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { guardSql } from '@leasehold/fence/migrations'
import { type Service, until, Workshop } from '../../packages/cli/test/support/cli.js'
import { type Postgres, startPostgres } from './postgres.js'
import { describeWith } from './suite.js'

/**
 * The child of `leasehold run`: reads the record under the guard, waits for the gate, and adds its amount. It has nothing
 * but the environment that `run` gives it.
 */
const CHILD = `
import { existsSync } from 'node:fs'
import { handHeld } from '@leasehold/fence'
import { fence } from '@leasehold/fence/pg'
import pg from 'pg'
const [url, amount, gate] = process.argv.slice(2)
const hold = handHeld(process.env.LEASEHOLD_LOCK, process.env.LEASEHOLD_FENCING_TOKEN)
const pool = new pg.Pool({ connectionString: url, max: 1 })
const guard = fence(pool)
const read = (tx) => tx.query("SELECT total FROM invoice WHERE id = 'a'").then((result) => Number(result.rows[0].total))
const total = await guard.with(hold, read)
console.log(JSON.stringify({ token: process.env.LEASEHOLD_FENCING_TOKEN, total, pid: process.pid, supervisor: process.ppid }))
while (!existsSync(gate)) await new Promise((done) => setTimeout(done, 10))
try {
  await guard.with(hold, (tx) => tx.query("UPDATE invoice SET total = $1 WHERE id = 'a'", [total + Number(amount)]))
  console.log('written')
} catch (error) {
  console.log('refused ' + error.name)
}
await pool.end()
`

interface Said {
  token: string
  total: number
  pid: number
  supervisor: number
}

describeWith('PostgreSQL', 'leasehold run with a guard in PostgreSQL', () => {
  const workshop = new Workshop()
  let postgres: Postgres
  let service: Service
  let db: Client
  let folder: string

  beforeAll(async () => {
    postgres = await startPostgres()
    service = await workshop.serve(workshop.folder())
    db = new Client({ connectionString: postgres.url })
    await db.connect()
    await db.query(guardSql('pg'))
    await db.query('CREATE TABLE invoice (id text PRIMARY KEY, total bigint NOT NULL)')
    // Inside the repository, so that the child finds the packages.
    folder = mkdtempSync(fileURLToPath(new URL('../../node_modules/.run-and-guard-', import.meta.url)))
    writeFileSync(join(folder, 'child.mjs'), CHILD)
  })
  afterAll(async () => {
    await db?.end()
    await workshop.close()
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    await postgres?.stop()
  })

  const start = (amount: number, gate: string) => {
    const child = [process.execPath, join(folder, 'child.mjs'), postgres.url, String(amount), gate]
    return workshop.start(['run', 'invoice/a', '--ttl', '4s', '--wait', '40s', '--url', service.url, '--', ...child])
  }
  const total = async () => Number((await db.query("SELECT total FROM invoice WHERE id = 'a'")).rows[0].total)

  test('the guard refuses a stopped holder that resumes, and the record is right', async () => {
    await db.query("INSERT INTO invoice VALUES ('a', 100) ON CONFLICT (id) DO UPDATE SET total = 100")
    const gateA = join(folder, 'go-a')
    const open = join(folder, 'open')
    writeFileSync(open, '')

    const a = start(30, gateA)
    await a.printed('token')
    const saidA = JSON.parse(a.stdout.split('\n')[0] as string) as Said
    expect(saidA.total).toBe(100)
    // Everything that keeps the lease or watches over it is stopped, as by a frozen machine.
    a.kill('SIGSTOP')
    for (const pid of [saidA.supervisor, saidA.pid]) process.kill(pid, 'SIGSTOP')

    const b = start(50, open)
    const endB = await b.finished
    expect([endB.code, endB.stderr]).toEqual([0, ''])
    const saidB = JSON.parse(endB.stdout.split('\n')[0] as string) as Said
    expect(BigInt(saidB.token)).toBeGreaterThan(BigInt(saidA.token))
    expect(await total()).toBe(150)

    writeFileSync(gateA, '')
    process.kill(saidA.pid, 'SIGCONT')
    await until(() => /refused|written/.test(a.stdout), 'the stale holder has tried')
    expect(a.stdout).toContain('refused StaleTokenError')
    process.kill(saidA.supervisor, 'SIGCONT')
    a.kill('SIGCONT')
    expect((await a.finished).code).toBe(76)
    expect(await total()).toBe(150)
  })

  test('leasehold demo --postgres shows both halves and leaves nothing behind', async () => {
    const end = await workshop.run(['demo', '--json', '--postgres', postgres.url])
    expect([end.code, end.stderr]).toEqual([0, ''])
    const { halves } = JSON.parse(end.stdout) as { halves: { refused: string | null; lostUpdate: boolean }[] }
    expect(halves.map(({ refused, lostUpdate }) => [refused, lostUpdate])).toEqual([
      [null, true],
      ['StaleTokenError', false],
    ])
    const { rows } = await db.query(
      "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'leasehold%'",
    )
    expect(rows).toEqual([])
  })
})
