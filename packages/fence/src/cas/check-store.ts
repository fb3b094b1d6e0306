import { InvalidError } from '@leasehold/core'
import type { CasStore } from './store.js'
import { platform } from '../common/platform.js'

/**
 * Checks that a store (or its adapter) honours the condition of a write, by writing one small object a few times. Some
 * emulators and gateways accept conditional requests and ignore the condition; some APIs report a rejection in a way that an
 * adapter easily misses. Run it once per store, at the start of a program or in its tests. The object is not deleted.
 * @throws InvalidError (`mismatch`) that names the violation
 */
export async function checkCasStore<Version>(
  store: CasStore<Version>,
  key = `leasehold-check-${platform.newId()}`,
): Promise<void> {
  const bytes = (text: string) => new TextEncoder().encode(`${text} ${platform.newId()}`)
  const must = async (what: string, version: Version | null, expected: boolean) => {
    const written = (await store.write(key, bytes(what), version)) !== false
    if (written === expected) return
    throw broken(key, `${what} was ${written ? 'accepted' : 'rejected'}`)
  }
  const versionNow = async () => {
    const found = await store.read(key)
    if (found === null) throw broken(key, 'an object that was written cannot be read')
    return found.version
  }
  if ((await store.read(key)) !== null) throw new InvalidError(`the object ${JSON.stringify(key)} exists already`)
  await must('a first write', null, true)
  const first = await versionNow()
  await must('a second creation', null, false)
  await must('a write over the version that was read', first, true)
  await must('a write over a version from before', first, false)
  const second = await versionNow()
  if (JSON.stringify(second) === JSON.stringify(first)) throw broken(key, 'two contents had the same version')
  const both = await Promise.all(['one', 'two'].map((text) => store.write(key, bytes(text), second)))
  const accepted = both.filter((answer) => answer !== false).length
  if (accepted !== 1) throw broken(key, `of two writes over one version ${accepted} were accepted`)
}

function broken(key: string, what: string): InvalidError {
  return new InvalidError(
    `this store cannot be guarded with compare-and-set: ${what} (object ${JSON.stringify(key)})`,
    {
      code: 'mismatch',
      hint: 'check that the store knows conditional writes, and that the adapter returns false for a rejected one',
    },
  )
}
