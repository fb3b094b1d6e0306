import { expectTypeOf, it } from 'vitest'
import type { Hold, Locks } from '../src/index.js'

// Compiled, not run: what must not compile is marked.
function misuse(locks: Locks, hold: Hold): void {
  const asNumber = () => {
    // @ts-expect-error: a token is a bigint
    const token: number = hold.token
    return token
  }
  // @ts-expect-error: a token is not computed with
  const next: typeof hold.token = hold.token + 1n
  // @ts-expect-error: a hold is made by acquire only
  hold.state = 'held'
  // @ts-expect-error: no such mode
  void locks.acquire('a', { mode: 'write' })
  // @ts-expect-error: no such option
  void locks.acquire('a', { timeout: '5s' })
  // @ts-expect-error: tryAcquire never waits
  void locks.tryAcquire('a', { wait: '5s' })
  void locks.tryAcquire('a').then((maybe) => {
    // @ts-expect-error: it may be null
    maybe.assertHeld()
  })
  void locks.request('a', { ifAvailable: true }, (maybe) => {
    // @ts-expect-error: it may be null
    maybe.assertHeld()
  })
  // @ts-expect-error: versions are bigint
  void locks.register('r').put(1, { ifVersion: 7 })
  // @ts-expect-error: a fence is a hold, not a token
  void locks.register('r').put(1, { fence: hold.token })
  // @ts-expect-error: a reason is needed
  void locks.steal('a', {})
  // @ts-expect-error: a slot is needed
  void locks.once('a', {}, () => {})
  void [asNumber, next]
}

it('values have the types that users rely on', () => {
  void misuse
  type Returned = Awaited<ReturnType<typeof request>>
  const request = (locks: Locks) => locks.request('a', async () => 7)
  expectTypeOf<Returned>().toEqualTypeOf<number>()
  expectTypeOf<Hold['token']>().toExtend<bigint>()
  expectTypeOf<Awaited<ReturnType<Locks['acquire']>>>().toEqualTypeOf<Hold>()
  expectTypeOf<Awaited<ReturnType<Locks['tryAcquire']>>>().toEqualTypeOf<Hold | null>()
})
