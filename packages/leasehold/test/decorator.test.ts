import { afterAll, describe, expect, test } from 'vitest'
import { createLocks, type Locks } from '../src/index.js'
import { currentHold, Locked } from '../src/decorator.js'

const client = createLocks('memory:locked')
afterAll(() => client.close())

describe('@Locked', () => {
  test('works as a standard decorator', async () => {
    async function pay(this: { locks: Locks }, id: string) {
      return `${currentHold().name} ${id}`
    }
    const locked = Locked((id: string) => `invoice/${id}`)(pay, { kind: 'method' })
    expect([locked.name, locked.length]).toEqual(['pay', 1])
    expect(await locked.call({ locks: client }, '42')).toBe('invoice/42 42')
  })

  test('uses the client that the option returns', async () => {
    const run = Locked('a', { locks: (self: { its: Locks }) => self.its })(async () => currentHold('a').state, {
      kind: 'method',
    })
    expect(await run.call({ its: client } as never)).toBe('held')
    await expect(run.call({} as never)).rejects.toThrow(/no client/)
  })

  test('gives concurrent calls their own holds', async () => {
    const run = Locked((id: number) => `n/${id}`)(
      async (id: number) => {
        await new Promise((resolve) => setTimeout(resolve, 5))
        return [id, currentHold().name]
      },
      { kind: 'method' },
    )
    const all = await Promise.all([1, 2, 3].map((id) => run.call({ locks: client } as never, id)))
    expect(all).toEqual([1, 2, 3].map((id) => [id, `n/${id}`]))
    expect(() => currentHold()).toThrow(/no hold here/)
  })

  test('rejects anything but methods', () => {
    expect(() => Locked('a')({}, 'field', {})).toThrow(/methods/)
  })
})
