// A test file as users of node:test write it.
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createTestService } from 'leasehold/testing'

await test('a paused holder loses its lock', async () => {
  const service = createTestService()
  const locks = service.client({ ttl: '10s' })
  const hold = await locks.acquire('invoice/42')
  service.pause(locks)
  await service.advance('10s')
  assert.equal(hold.state, 'lost')
  await service.close()
})

await test('leases follow the mocked timers', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const service = createTestService({ framework: true })
  const turns = async () => {
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  const pass = async (ms) => {
    for (let passed = 0; passed < ms; passed += 50) {
      mock.timers.tick(50)
      await turns()
    }
  }
  const locks = service.client({ ttl: '10s' })
  const acquiring = locks.acquire('invoice/42')
  await pass(50)
  const hold = await acquiring
  await pass(30_000)
  assert.equal(hold.state, 'held')
  service.dropRenewals(locks)
  await pass(10_000)
  assert.equal(hold.state, 'lost')
  const closing = service.close()
  await pass(1_000)
  await closing
  mock.timers.reset()
})
