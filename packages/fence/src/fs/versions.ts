import { padToken, UnknownOutcomeError } from '@leasehold/core'
import { staleToken, type Target } from '../common/resource.js'
import { isMissing } from './errors.js'
import type { Entry, Folder } from './folder.js'

/** Digits of a version's number. */
export const WRITE_DIGITS = 6
/** How often a reader starts over when a concurrent sweep deletes what it reads. */
const READ_ATTEMPTS_MAX = 10
/** Bound of the files that one sweep deletes; the next sweep continues. */
const SWEEP_FILES_MAX = 1_000
/** The base of the first hold. */
const NOTHING = 'nothing'

export function fileOf(token: bigint, what: Entry['what']): string {
  return `${padToken(token)}.${typeof what === 'number' ? String(what).padStart(WRITE_DIGITS, '0') : what}`
}

function highest(tokens: readonly bigint[]): bigint | undefined {
  return tokens.reduce<bigint | undefined>(
    (most, token) => (most === undefined || token > most ? token : most),
    undefined,
  )
}

/** Returns the tokens of the holds that have opened. */
function marksOf(entries: readonly Entry[]): bigint[] {
  return entries.filter((entry) => entry.what === 'open').map((entry) => entry.token)
}

/** Returns the numbers of the versions that a hold has written, in ascending order. */
export function versionsOf(entries: readonly Entry[], token: bigint): number[] {
  const numbers = entries.flatMap((entry) =>
    entry.token === token && typeof entry.what === 'number' ? [entry.what] : [],
  )
  return numbers.sort((a, b) => a - b)
}

/** Creates the mark of a hold, checks that it is the highest, and determines its base. @throws StaleTokenError */
export async function raise(folder: Folder, path: string, target: Target): Promise<void> {
  const mark = fileOf(target.token, 'open')
  let entries = await folder.list()
  if (!entries.some((entry) => entry.name === mark)) {
    await folder.create(mark, new Uint8Array())
    entries = await folder.list()
  }
  checkNewest(path, target, entries)
  await baseOf(folder, target.token)
  await folder.syncOnce(mark)
}

export function checkNewest(path: string, target: Target, entries: readonly Entry[]): void {
  const newest = highest(marksOf(entries))
  if (newest !== undefined && newest > target.token) throw staleToken(path, target.token, newest)
}

/** Returns the version from which the hold of a token starts. The first call, by any process, determines it. */
async function baseOf(folder: Folder, token: bigint): Promise<string> {
  const name = fileOf(token, 'base')
  const entries = await folder.list()
  if (!entries.some((entry) => entry.name === name)) {
    const before = highest(marksOf(entries).filter((mark) => mark < token))
    const base = before === undefined ? NOTHING : await currentOf(folder, before)
    await folder.create(name, new TextEncoder().encode(base))
  }
  return new TextDecoder().decode(await folder.read(name))
}

/** Returns the last version that the hold of a token has written, or else its base. */
export async function currentOf(folder: Folder, token: bigint): Promise<string> {
  const last = versionsOf(await folder.list(), token).at(-1)
  return last === undefined ? await baseOf(folder, token) : fileOf(token, last)
}

/**
 * Checks that the newest hold that has opened starts from this version, or from one that descends from it; every later hold then
 * does too.
 * @throws StaleTokenError if it does not, UnknownOutcomeError if a sweep has deleted the files that would show it
 */
export async function checkAccepted(folder: Folder, path: string, target: Target, write: number): Promise<void> {
  const { token } = target
  const newest = highest(marksOf(await folder.list()))
  if (newest === undefined || newest <= token) return
  let from = await baseOf(folder, newest)
  // Terminates, because each step leads to a lower token.
  for (let writer = writerOf(from); writer !== undefined && writer >= token; writer = writerOf(from)) {
    if (writer === token && from >= fileOf(token, write)) return
    if (writer === token) break
    try {
      from = new TextDecoder().decode(await folder.read(fileOf(writer, 'base')))
    } catch (error) {
      if (!isMissing(error)) throw error
      throw new UnknownOutcomeError(
        'the version was written, and later holds have swept the files that would show whether it counts',
        {
          hint: 'abandon the unit of work, or repeat it under a new hold',
        },
      )
    }
  }
  throw staleToken(path, token, newest)
}

/** Returns the token of the hold that wrote a version; undefined for no version. */
function writerOf(version: string): bigint | undefined {
  return version === NOTHING ? undefined : BigInt(version.slice(0, version.indexOf('.')))
}

export async function contentOf(folder: Folder, name: string): Promise<Uint8Array | null> {
  return name === NOTHING ? null : await folder.read(name)
}

export async function latestOf(folder: Folder): Promise<Uint8Array | null> {
  for (let attempt = 1; ; attempt++) {
    const newest = highest(marksOf(await folder.list()))
    if (newest === undefined) return null
    try {
      return await contentOf(folder, await currentOf(folder, newest))
    } catch (error) {
      if (!isMissing(error) || attempt >= READ_ATTEMPTS_MAX) throw error
    }
  }
}

/** Deletes the files of earlier holds, except the version that the newest hold starts from. Returns the number of deleted files. */
export async function sweep(folder: Folder, token: bigint): Promise<number> {
  const current = await currentOf(folder, token)
  const entries = await folder.list()
  const old = entries.filter((entry) => {
    if (entry.name === current || entry.token > token) return false
    if (entry.token === token) return typeof entry.what === 'number' && entry.name < current
    return true
  })
  // Oldest first, and of one hold its versions before its mark. If the sweep stops in between, writers that miss a file find the
  // mark of the sweeping hold and stop.
  const names = [...old.map((entry) => entry.name), ...(await folder.unfinishedBelow(token))]
  const some = names.sort().slice(0, SWEEP_FILES_MAX)
  await folder.remove(some)
  return some.length
}
