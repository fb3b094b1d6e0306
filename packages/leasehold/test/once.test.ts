import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, Workshop } from '../../cli/test/support/cli.js'
import { connect, type Locks } from '../src/index.js'

const SLOTS = 150

const workshop = new Workshop()
let service: Service
let clients: Locks[]
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
  clients = await Promise.all([connect(service.url), connect(service.url, { transport: 'http' })])
})
afterAll(async () => {
  await Promise.all(clients.map((locks) => locks.close()))
  await workshop.close()
})

const day = (n: number) => new Date(Date.UTC(2026, 5, 1 + n))
const hash = (n: number) => createHash('sha1').update(`${n}`).digest('hex')
const KINDS: Record<string, (n: number) => string | Date> = {
  'commit hashes': hash,
  UUIDs: (n) => hash(n).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5'),
  'local dates': (n) => day(n).toLocaleDateString('en-US', { timeZone: 'UTC' }),
  Dates: day,
  'numbers that fall': (n) => `${SLOTS - n}`,
}

describe('once on a service', () => {
  test.each(Object.keys(KINDS))('runs each of %s exactly once, whichever client asks', async (kind) => {
    const slotOf = KINDS[kind] as (n: number) => string | Date
    const ran: number[] = []
    for (let n = 0; n < SLOTS; n++) {
      const outcomes = await Promise.all(
        clients.map((locks) => locks.once(kind, { slot: slotOf(n) }, () => void ran.push(n))),
      )
      expect(outcomes.filter((outcome) => outcome.ran)).toHaveLength(1)
    }
    expect(ran).toEqual(Array.from({ length: SLOTS }, (_, n) => n))
    // All slots of a name are in one register.
    const locks = clients[0] as Locks
    const again = await locks.once(kind, { slot: slotOf(SLOTS - 1) }, () => {})
    expect(again).toEqual({ ran: false })
    expect(await locks.register(`once/${kind}`).get()).not.toBeNull()
  })
})
