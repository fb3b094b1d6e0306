import * as nodeFs from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { InvalidError, padToken, UnknownOutcomeError } from '@leasehold/core'
import { type Entry, type FileSystem, Folder } from './fs/folder.js'
import type { OpenOptions } from './common/guard.js'
import { describe, type GuardableHold, tracked } from './common/hold.js'
import { openingOf, staleToken, type Target } from './common/resource.js'

export interface FileGuardOptions {
  /** Default: `node:fs/promises`. */
  readonly fs?: FileSystem
}

/** A file that is never overwritten: each write makes a new version beside the old ones. */
export interface FileGuard {
  /** Raises the mark: later writes of earlier holds are refused. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens, and reads the version that this hold has written last, or starts from; null if nothing was ever written. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Uint8Array | null>
  /**
   * Opens, and writes a new version. One write of a hold at a time.
   * @throws StaleTokenError when a later hold has opened and does not start from this version, UnknownOutcomeError when
   *   later holds have swept so much meanwhile that nobody can tell
   */
  write(hold: GuardableHold, content: Uint8Array | string, options?: OpenOptions): Promise<void>
  /** For readers without a lock: the newest version; null if nothing was ever written. */
  latest(): Promise<Uint8Array | null>
  /** Opens, and deletes what no later holder and no reader needs, at most 1 000 files. Answers how many. */
  sweep(hold: GuardableHold, options?: OpenOptions): Promise<number>
}

const WRITE_DIGITS = 6
const WRITES_MAX = 10 ** WRITE_DIGITS
/** Who reads while a sweep deletes begins again, so often. */
const READ_ATTEMPTS_MAX = 10
/** A sweep deletes so many files at most: the next one goes on. */
const SWEEP_FILES_MAX = 1_000
const NOTHING = 'nothing'

/**
 * A guard for a file on a local file system, which has no compare-and-swap: nothing is overwritten. Beside `path` there are
 * `path.TOKEN.open` (the mark), `path.TOKEN.base` (the version that the holder starts from) and `path.TOKEN.000000` and so on
 * (its versions). Each appears complete, by `link`, and only once.
 *
 * Every holder starts from one version of its predecessor, fixed by the first who creates its `base` file: itself, or a late
 * writer that finds its mark. A version is accepted if it was there before any later mark, or if the newest holder starts from it,
 * directly or through others; both are seen by listing the folder after the version is there. So no acknowledged version is passed
 * over, and none that counts is called stale.
 *
 * @example
 * const file = fence('/srv/state/report.json')
 * const old = await file.read(hold)
 * await file.write(hold, next(old))
 */
export function fence(path: string, options: FileGuardOptions = {}): FileGuard {
  if (typeof path !== 'string' || basename(path) === '' || path.includes('\0')) {
    throw new InvalidError(`a guard for a file takes its path, not ${describe(path)}`)
  }
  const folder = new Folder(dirname(path), `${basename(path)}.`, options.fs ?? nodeFs)
  const opened = <T>(hold: GuardableHold, open: OpenOptions | undefined, then: (target: Target) => Promise<T>) =>
    tracked(hold, async () => {
      const target = targetOf(hold, open)
      hold.assertHeld()
      try {
        await raise(folder, path, target)
        return await then(target)
      } catch (error) {
        // What a later holder has swept is missing because this one is late.
        if (isMissing(error)) checkNewest(path, target, await folder.list())
        throw error
      }
    })

  return {
    open: (hold, open) => opened(hold, open, async () => {}),
    read: (hold, open) =>
      opened(hold, open, async ({ token }) => await contentOf(folder, await currentOf(folder, token))),
    write: (hold, content, open) =>
      opened(hold, open, async (target) => {
        if (typeof content !== 'string' && !(content instanceof Uint8Array)) {
          throw new InvalidError(`the content of a file is text or bytes, not ${describe(content)}`)
        }
        const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
        const last = versionsOf(await folder.list(), target.token).at(-1)
        const write = last === undefined ? 0 : last + 1
        if (write >= WRITES_MAX) throw new InvalidError(`one hold writes a file at most ${WRITES_MAX} times`)
        hold.assertHeld()
        if (!(await folder.create(fileOf(target.token, write), bytes))) {
          throw new InvalidError('this hold writes the file twice at the same time', {
            hint: 'wait for the first write',
          })
        }
        await checkAccepted(folder, path, target, write)
      }),
    latest: () => latestOf(folder),
    sweep: (hold, open) => opened(hold, open, ({ token }) => sweep(folder, token)),
  }
}

function targetOf(hold: GuardableHold, options: OpenOptions | undefined): Target {
  const { targets } = openingOf(hold, { resource: (_hold, lock) => lock }, options)
  const [target, ...more] = targets as [Target, ...Target[]]
  if (more.length > 0)
    throw new InvalidError('a hold of several locks: which one protects this file?', { hint: 'say { lock }' })
  if (!target.writes || target.kind === 'slot') {
    throw new InvalidError('a file is guarded by exclusive holds', { code: 'mismatch', hint: 'readers call latest()' })
  }
  return target
}

function fileOf(token: bigint, what: Entry['what']): string {
  return `${padToken(token)}.${typeof what === 'number' ? String(what).padStart(WRITE_DIGITS, '0') : what}`
}

function highest(tokens: readonly bigint[]): bigint | undefined {
  return tokens.reduce<bigint | undefined>(
    (most, token) => (most === undefined || token > most ? token : most),
    undefined,
  )
}

/** Tokens of the holds that have opened. */
function marksOf(entries: readonly Entry[]): bigint[] {
  return entries.filter((entry) => entry.what === 'open').map((entry) => entry.token)
}

/** Numbers of the versions that a hold has written, in order. */
function versionsOf(entries: readonly Entry[], token: bigint): number[] {
  const numbers = entries.flatMap((entry) =>
    entry.token === token && typeof entry.what === 'number' ? [entry.what] : [],
  )
  return numbers.sort((a, b) => a - b)
}

/** Puts the mark there, looks whether it is the highest, and decides what its holder starts from. */
async function raise(folder: Folder, path: string, target: Target): Promise<void> {
  const mark = fileOf(target.token, 'open')
  let entries = await folder.list()
  if (!entries.some((entry) => entry.name === mark)) {
    await folder.create(mark, new Uint8Array())
    entries = await folder.list()
  }
  checkNewest(path, target, entries)
  await baseOf(folder, target.token)
  await folder.settle(mark)
}

function checkNewest(path: string, target: Target, entries: readonly Entry[]): void {
  const newest = highest(marksOf(entries))
  if (newest !== undefined && newest > target.token) throw staleToken(path, target.token, newest)
}

function isMissing(error: unknown): boolean {
  return (error as { code?: string } | null)?.code === 'ENOENT'
}

/** The version that the holder of a token starts from. Decides it, for good, if nobody has. */
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

/** What the holder of a token has written last, or else starts from. */
async function currentOf(folder: Folder, token: bigint): Promise<string> {
  const last = versionsOf(await folder.list(), token).at(-1)
  return last === undefined ? await baseOf(folder, token) : fileOf(token, last)
}

/**
 * Whether the newest holder that has opened by now starts from this version, or from one that was made from it: all who come after
 * it start from there. What a sweep has deleted in between can no longer be told.
 */
async function checkAccepted(folder: Folder, path: string, target: Target, write: number): Promise<void> {
  const { token } = target
  const newest = highest(marksOf(await folder.list()))
  if (newest === undefined || newest <= token) return
  let from = await baseOf(folder, newest)
  // Each step goes to an earlier token: it ends.
  for (let maker = makerOf(from); maker !== undefined && maker >= token; maker = makerOf(from)) {
    if (maker === token && from >= fileOf(token, write)) return
    if (maker === token) break
    try {
      from = new TextDecoder().decode(await folder.read(fileOf(maker, 'base')))
    } catch (error) {
      if (!isMissing(error)) throw error
      throw new UnknownOutcomeError(
        'the version was written, and later holders have swept what would tell whether it counts',
        {
          hint: 'give the unit of work up, or repeat it under a new hold',
        },
      )
    }
  }
  throw staleToken(path, token, newest)
}

/** The token of the hold that has written a version; undefined for none. */
function makerOf(version: string): bigint | undefined {
  return version === NOTHING ? undefined : BigInt(version.slice(0, version.indexOf('.')))
}

async function contentOf(folder: Folder, name: string): Promise<Uint8Array | null> {
  return name === NOTHING ? null : await folder.read(name)
}

async function latestOf(folder: Folder): Promise<Uint8Array | null> {
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

/** The newest hold keeps its mark, its base, and its current version; everything of earlier holds goes, but what it names. */
async function sweep(folder: Folder, token: bigint): Promise<number> {
  const current = await currentOf(folder, token)
  const entries = await folder.list()
  const old = entries.filter((entry) => {
    if (entry.name === current || entry.token > token) return false
    if (entry.token === token) return typeof entry.what === 'number' && entry.name < current
    return true
  })
  // The oldest first, of one hold its versions before its mark, and what crashes have left. Whatever is missing when this stops in
  // between, its writers are late: they find the mark of the hold that sweeps.
  const names = [...old.map((entry) => entry.name), ...(await folder.unfinishedBelow(token))]
  const some = names.sort().slice(0, SWEEP_FILES_MAX)
  await folder.remove(some)
  return some.length
}
