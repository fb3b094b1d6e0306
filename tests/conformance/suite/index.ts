import { afterAll, beforeAll, describe, vi } from 'vitest'
import { describeWith } from '../../services/suite.js'
import type { Fixture } from '../fixture.js'
import { Context } from './context.js'
import { faults } from './faults.js'
import { gaps } from './gaps.js'
import { grants } from './grants.js'
import { lives } from './lives.js'
import { views } from './queries.js'
import { waiting } from './waiting.js'

const TEST_TIMEOUT_MS = 240_000

/** The whole suite on one engine. Every engine passes the same one; what it cannot do, its fixture declares. */
export function conformance(fixture: Fixture): void {
  vi.setConfig({ testTimeout: TEST_TIMEOUT_MS, hookTimeout: TEST_TIMEOUT_MS })
  const body = () => {
    const context = new Context(fixture)
    beforeAll(async () => {
      context.engine = await fixture.start()
    })
    afterAll(async () => {
      await context.engine?.stop()
    })
    describe('grants', () => grants(context))
    describe('waiting', () => waiting(context))
    describe('lives', () => lives(context))
    describe('views', () => views(context))
    describe('gaps', () => gaps(context))
    if (fixture.line === true) describe('faults', () => faults(context))
  }
  if (fixture.needs === undefined) describe(`conformance: ${fixture.name}`, body)
  else describeWith(fixture.needs, `conformance: ${fixture.name}`, body)
}
