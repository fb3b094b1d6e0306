import { splitToken } from '@leasehold/core'
import { afterAll, describe, expect, test } from 'vitest'
import { Workshop } from './support/cli.js'

const workshop = new Workshop()
afterAll(() => workshop.close())

interface Facts {
  asExpected: boolean
  halves: {
    guarded: boolean
    record: number
    right: number
    refused: string | null
    lostUpdate: boolean
    tokens: { A: string; B: string }
  }[]
}

describe('leasehold demo', () => {
  test('loses an update without a guard, and refuses the stale write with one', async () => {
    const start = performance.now()
    const end = await workshop.run(['demo', '--json'])
    expect(performance.now() - start).toBeLessThan(50_000)
    expect([end.code, end.stderr]).toEqual([0, ''])
    const { asExpected, halves } = JSON.parse(end.stdout) as Facts
    expect(asExpected).toBe(true)
    expect(halves.map(({ guarded, lostUpdate, refused }) => ({ guarded, lostUpdate, refused }))).toEqual([
      { guarded: false, lostUpdate: true, refused: null },
      { guarded: true, lostUpdate: false, refused: 'StaleTokenError' },
    ])
    // The very numbers of the article's picture, unless this machine was so slow that a session had to be opened again.
    const [, guarded] = halves.map((half) =>
      [half.tokens.A, half.tokens.B].map((token) => splitToken(BigInt(token)).serial),
    )
    expect(guarded?.[0]).toBeGreaterThanOrEqual(33)
    expect(guarded?.[1]).toBeGreaterThan(guarded?.[0] as number)
    expect(guarded?.[1]).toBeLessThan(50)
  })

  test('draws a timeline of both halves', async () => {
    const { code, stdout } = await workshop.run(['demo'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/Without a guard[\s\S]*░░░[\s\S]*Lost:[\s\S]*With a guard[\s\S]*Right:/)
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(120)
  })
})
