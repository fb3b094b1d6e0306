import { afterEach, beforeEach, expect } from 'vitest'
import { settle } from './platform.js'
import { TestService } from './service.js'

/** A fresh service for each test. Afterwards nothing may be left: timers, connections, sessions, unhandled rejections. */
export function suite(): { readonly service: TestService } {
  const current: { service: TestService } = { service: undefined as never }
  const rejections: unknown[] = []
  const onRejection = (error: unknown) => rejections.push(error)
  beforeEach(() => {
    current.service = new TestService()
    rejections.length = 0
    process.on('unhandledRejection', onRejection)
  })
  afterEach(async () => {
    const { service } = current
    const left = await service.end()
    await settle()
    process.off('unhandledRejection', onRejection)
    expect(rejections).toEqual([])
    expect(left).toMatchObject({ timers: 0, connections: 0 })
    expect(service.platform.reports).toEqual([])
  })
  return current
}
