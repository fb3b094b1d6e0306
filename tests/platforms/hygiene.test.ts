import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { COMPILERS, Packed, RESOLUTIONS } from './hygiene.mjs'

// The packages as they would be published. `npm run hygiene` judges all of them with every judge; this is the share of it
// that is quick enough for every day: what users import themselves.
const FOLDERS = ['core', 'client', 'fence', 'leasehold'] as const
const packed = new Packed()
beforeAll(() => packed.make(FOLDERS))
afterAll(() => packed.remove())

const ok = { status: 0, output: expect.anything() }
const verdict = async (check: Promise<{ status: number | null; output: string }>) => {
  const { status, output } = await check
  expect(status === 0 ? ok : output).toEqual(ok)
}

describe.concurrent('as they would be published', () => {
  test.each(FOLDERS)('publint has nothing to say about %s', (folder) => verdict(packed.publint(folder)))

  test.each(['client', 'leasehold'])('attw finds the types of %s', (folder) => verdict(packed.attw(folder)))

  test.each([
    ['TypeScript 5.4', 'node16'],
    ...RESOLUTIONS.map((resolution) => ['TypeScript 7.0', resolution] as const),
  ] as const)('%s with %s accepts what is right and refuses what is wrong', (compiler, resolution) =>
    verdict(packed.compile(COMPILERS[compiler], resolution, compiler)),
  )
})
