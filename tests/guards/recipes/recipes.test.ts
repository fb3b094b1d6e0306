import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StaleTokenError } from '@leasehold/core'
import { type CasStore, checkCasStore, fence } from '@leasehold/fence/cas'
import { provesFencing } from '@leasehold/fence/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdOf } from '../../../packages/fence/test/support/holds.js'
import { azureContainer, firestoreCollection, gcsBucket, r2Bucket } from './fake-clients.js'
import { blocksOf, workFolder } from '../../services/doc-blocks.js'

const text = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes))
const folder = workFolder()
afterAll(() => folder.remove())

/** The adapters as they are printed on their pages, against fakes of what their clients document. */
describe.each([
  ['docs/guards/gcs.md', 'gcsStore', gcsBucket],
  ['docs/guards/r2.md', 'r2Store', r2Bucket],
  ['docs/guards/azure-blob.md', 'azureBlobStore', azureContainer],
  ['docs/guards/firestore.md', 'firestoreStore', firestoreCollection],
] as const)('the recipe on the page %s', (page, name, client) => {
  let adapter: (client: unknown) => CasStore<unknown>
  beforeAll(async () => {
    const file = join(folder.path, `${name}.mjs`)
    writeFileSync(
      file,
      blocksOf(page)
        .map((block) => block.code)
        .join('\n'),
    )
    adapter = ((await import(/* @vite-ignore */ pathToFileURL(file).href)) as Record<string, typeof adapter>)[
      name
    ] as typeof adapter
  })

  it('keeps the condition, and notices a store that does not', async () => {
    await checkCasStore(adapter(client()))
    await expect(checkCasStore(adapter(client({ ignoresConditions: true })))).rejects.toMatchObject({
      code: 'mismatch',
    })
  })

  it('is a guard', async () => {
    const guard = fence(adapter(client()))
    await guard.write(holdOf(33n, 'a/b'), 'x')
    expect(text(await guard.read(holdOf(34n, 'a/b')))).toBe('x')
    await expect(guard.write(holdOf(33n, 'a/b'), 'late')).rejects.toThrow(StaleTokenError)
    await guard.delete(holdOf(34n, 'a/b'))
    expect(await guard.latest('a/b')).toBe(null)
    await provesFencing(
      {
        open: (hold) => guard.open(hold),
        read: async (hold) => Number(text(await guard.read(hold))),
        write: (hold, n) => guard.write(hold, String(n)),
        remove: (hold) => guard.delete(hold),
      },
      { log: () => {} },
    )
  })

  it('passes errors of other kinds on', async () => {
    const guard = fence(adapter(client({ broken: true })), { attempts: 1 })
    await expect(guard.open(holdOf(33n))).rejects.toMatchObject({ code: 'unreachable' })
  })
})
