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
  await import('../acquire.test.js')
  await import('../hold.test.js')
  await import('../parts.test.js')
  await import('../request.test.js')
})
