import * as nodeFs from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { InvalidError } from '@leasehold/core'
import { isMissing } from './fs/errors.js'
import { type FileSystem, Folder } from './fs/folder.js'
import {
  checkAccepted,
  checkNewest,
  contentOf,
  currentOf,
  fileOf,
  latestOf,
  raise,
  sweep,
  versionsOf,
  WRITE_DIGITS,
} from './fs/versions.js'
import type { OpenOptions } from './common/guard.js'
import { describe, type GuardableHold } from './common/hold.js'
import { tracked } from './common/tracked.js'
import { openingOf, type Target } from './common/resource.js'

export interface FileGuardOptions {
  /** Default: `node:fs/promises`. */
  readonly fs?: FileSystem
}

/** A guarded file. It is never overwritten: each write creates a new version beside the old ones. */
export interface FileGuard {
  /** Raises the mark: writes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens and reads the last version of this hold, or the one that it starts from; null if nothing was ever written. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Uint8Array | null>
  /**
   * Opens and writes a new version. Writes of one hold must not overlap.
   * @throws StaleTokenError if a later hold has opened and does not start from this version, UnknownOutcomeError if later
   *   holds have swept the files that would show it
   */
  write(hold: GuardableHold, content: Uint8Array | string, options?: OpenOptions): Promise<void>
  /** Returns the newest version, for readers without a lock; null if nothing was ever written. */
  latest(): Promise<Uint8Array | null>
  /** Opens and deletes files that no later holder and no reader needs, at most 1 000. Returns their number. */
  sweep(hold: GuardableHold, options?: OpenOptions): Promise<number>
}

/** Bound of the writes of one hold. */
const WRITES_MAX = 10 ** WRITE_DIGITS

/**
 * A guard for a file on a local file system. Since file systems have no compare-and-swap, nothing is overwritten. Beside `path`
 * are `path.TOKEN.open` (the mark), `path.TOKEN.base` (the version from which the hold starts) and `path.TOKEN.000000` and so on
 * (its versions). Each file is created once, complete, by `link`.
 *
 * Every hold starts from one version of its predecessor. Its `base` file fixes which one; the hold itself creates it, or a late
 * writer that finds its mark. A version is accepted if it existed before any later mark, or if the newest hold descends from it;
 * the writer checks both by listing the folder after creating the version. So no acknowledged version is skipped, and no version
 * that counts is reported as stale.
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
        // A file is missing because a later hold has swept it: report the stale token instead.
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
          throw new InvalidError('this hold writes the file twice concurrently', {
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
    throw new InvalidError('a hold of several locks: which one protects this file?', { hint: 'pass { lock }' })
  if (!target.writes || target.kind === 'slot') {
    throw new InvalidError('a file is guarded by exclusive holds', { code: 'mismatch', hint: 'readers call latest()' })
  }
  return target
}
