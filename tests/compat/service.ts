import { createLocks, type Locks, type LocksOptions } from 'leasehold'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { type Service, until, Workshop } from '../../packages/cli/test/support/cli.js'

export { until } from '../../packages/cli/test/support/cli.js'

/** A real service for the tests of one file, and clients that end with their test. */
export function useService(): {
  client(options?: LocksOptions): Locks
  readonly url: string
  free(name: string): Promise<void>
} {
  const workshop = new Workshop()
  let service: Service
  let clients: Locks[] = []
  beforeAll(async () => {
    service = await workshop.serve(workshop.folder())
  })
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()))
    clients = []
  })
  afterAll(() => workshop.close())
  const client = (options: LocksOptions = {}) => {
    const locks = createLocks(service.url, options)
    clients.push(locks)
    return locks
  }
  return {
    client,
    get url() {
      return service.url
    },
    /** Waits until the lock is free. */
    free: (name) => until(async () => (await client().query({ name })).held.length === 0, `${name} is free`),
  }
}
