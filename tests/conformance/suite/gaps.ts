import { ABILITIES, type Ability, COMPLETE_ENGINES } from '@leasehold/client'
import type { Locks } from 'leasehold'
import { expect, it } from 'vitest'
import { type Context, rejection } from './context.js'

/** What asks for each ability. */
const ASKS: Record<Ability, (locks: Locks) => Promise<unknown>> = {
  exclusive: (locks) => locks.acquire('a'),
  shared: (locks) => locks.acquire('a', { mode: 'shared' }),
  permits: (locks) => locks.acquire('a', { permits: 2 }),
  'several locks': (locks) => locks.acquire(['a', 'b']),
  'lock delay': (locks) => locks.acquire('a', { lockDelay: '1s' }),
  'persistent holds': (locks) => locks.acquire('a', { persistent: true }),
  'portable holds': (locks) => locks.acquire('a', { portable: true }),
  watch: (locks) => locks.watch({ signal: AbortSignal.timeout(50) }).next(),
  registers: async (locks) => locks.register('r').get(),
  'fenced registers': async (locks) => locks.register('r').put(1, { fence: await locks.acquire('a'), ifVersion: 0n }),
}

/** What the engine cannot do is refused by name, and what it says it can do is not. */
export function gaps(context: Context): void {
  const { capabilities } = context.fixture
  for (const [ability, has] of Object.entries(ABILITIES) as [Ability, (typeof ABILITIES)[Ability]][]) {
    if (has(capabilities)) {
      it(`has ${ability}`, async () => {
        const locks = context.client()
        await ASKS[ability](locks)
        if (ability === 'persistent holds') await locks.steal('a', { reason: 'end of the test' })
      })
    } else {
      it(`has no ${ability}, and says which engines have it`, async () => {
        const error = await rejection(ASKS[ability](context.client()))
        expect(error).toMatchObject({ code: 'invalid', hint: expect.stringContaining(COMPLETE_ENGINES[0]) })
      })
    }
  }
}
