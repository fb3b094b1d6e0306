import { afterAll, beforeAll, describe } from 'vitest'
import { threads } from '../support/service.js'

/** Everything that a client does, once more with its connection and its renewals in another thread. */
describe('with the connection in another thread', async () => {
  beforeAll(() => {
    threads.apart = true
  })
  afterAll(() => {
    threads.apart = false
  })
  await import('../hold/acquire-hold.test.js')
  await import('../hold/hold.test.js')
  await import('../coordination/query.test.js')
  await import('../coordination/register.test.js')
  await import('../coordination/watch.test.js')
  await import('../coordination/election.test.js')
  await import('../coordination/once.test.js')
  await import('../hold/steal.test.js')
  await import('../close.test.js')
  await import('../status.test.js')
  await import('../hold/run-with-hold.test.js')
})
