// Runs in Node 22, which has node:sqlite: the guard of SQLite over it, from the build.
import { DatabaseSync } from 'node:sqlite'
import { handHeld } from '@leasehold/fence'
import { guardSql } from '@leasehold/fence/migrations'
import { fence, fencedUpdate } from '@leasehold/fence/sqlite'
import { provesFencing } from '@leasehold/fence/testkit'

const db = new DatabaseSync(':memory:')
db.exec(guardSql('sqlite'))
db.exec('CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL); INSERT INTO counter VALUES (1, 0)')
db.exec(guardSql('sqlite', { form: 'column', on: 'counter' }))
const guard = fence(db)
const seen = {}

await guard.with(handHeld('a', '33'), (tx) => tx.prepare('UPDATE counter SET n = 7 WHERE id = 1').run())
const late = await guard.with(handHeld('a', '32'), () => {}).catch((error) => error)
seen.late = late.name
db.exec('BEGIN IMMEDIATE')
guard.enterSync(db, handHeld('a', '34'))
db.exec('COMMIT')
seen.outside = await guard.enter(db, handHeld('a', '35')).catch((error) => error.code)
seen.n = db.prepare('SELECT n FROM counter').get().n

const row = { table: 'counter', where: { id: 1 } }
fencedUpdate(db, handHeld('a', '40'), row)
try {
  fencedUpdate(db, handHeld('a', '39'), { ...row, set: { n: 9 } })
} catch (error) {
  seen.row = error.name
}
const shared = { ...handHeld('a', '41'), mode: 'shared' }
seen.shared = await guard
  .with(shared, (tx) => tx.prepare('UPDATE counter SET n = 8').run())
  .catch((error) => error.code)
const proved = await provesFencing(
  {
    open: (hold) => guard.open(hold),
    read: (hold) => guard.with(hold, () => db.prepare('SELECT n FROM counter').get().n),
    write: (hold, n) => guard.with(hold, () => db.prepare('UPDATE counter SET n = ?').run(n)),
  },
  { log: () => {} },
)
seen.proved = proved.filter((one) => one.outcome === 'holds').length
console.log(JSON.stringify(seen))
