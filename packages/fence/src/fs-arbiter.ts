import * as nodeFs from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { InvalidError } from '@leasehold/core'
import { isMissing } from './fs/errors.js'
import { type FileSystem, Folder } from './fs/folder.js'
import { fileOf, versionsOf, WRITE_DIGITS } from './fs/versions.js'
import type { OpenOptions } from './common/guard.js'
import { describe, type GuardableHold } from './common/hold.js'
import { fence as fenceRegister, type GuardableRegister } from './register.js'
import { singleTarget } from './common/single-target.js'

export interface ArbitratedFileOptions {
  /** Default: `node:fs/promises`. */
  readonly fs?: FileSystem
}

/** A file whose current version is named by one of Leasehold's registers. */
export interface ArbitratedFile {
  /** Reads the current version under this hold; null if nothing was ever written. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Uint8Array | null>
  /** Writes a new version. The service makes it the current one only while the hold exists. Writes must not overlap. */
  write(hold: GuardableHold, content: Uint8Array | string, options?: OpenOptions): Promise<void>
  /** Returns the current version, for readers without a lock. */
  latest(): Promise<Uint8Array | null>
  /** Deletes versions of earlier holds except the current one, at most 1 000 files. Returns their number. */
  sweep(hold: GuardableHold, options?: OpenOptions): Promise<number>
}

const SWEEP_FILES_MAX = 1_000
/** How often a reader starts over when a concurrent sweep deletes what it reads. */
const READ_ATTEMPTS_MAX = 10

/**
 * Guards a file with Leasehold as the arbiter, for file systems that can only create files. Each write creates a file beside
 * `path`, named by token. A register, fenced by the hold, names the current one, so the file of a late writer is never read.
 *
 * @example
 * const file = arbitrated('/srv/settings.json', locks.register('files/settings.json'))
 * await locks.request('settings', (hold) => file.write(hold, text))
 */
export function arbitrated(
  path: string,
  register: GuardableRegister,
  options: ArbitratedFileOptions = {},
): ArbitratedFile {
  if (typeof path !== 'string' || basename(path) === '' || path.includes('\0')) {
    throw new InvalidError(`a guard for a file takes its path, not ${describe(path)}`)
  }
  const guard = fenceRegister<string>(register)
  const folder = new Folder(dirname(path), `${basename(path)}.`, options.fs ?? nodeFs)
  const tokenOf = (hold: GuardableHold, open: OpenOptions) => singleTarget(hold, {}, open, 'file').token

  return {
    read: (hold, open = {}) => guard.with(hold, open, (pointer) => contentOf(folder, () => pointer.get())),
    async write(hold, content, open = {}) {
      if (typeof content !== 'string' && !(content instanceof Uint8Array)) {
        throw new InvalidError(`the content of a file is text or bytes, not ${describe(content)}`)
      }
      const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
      await guard.with(hold, open, async (pointer) => {
        const token = tokenOf(hold, open)
        const name = await nextName(folder, token)
        await pointer.get()
        if (!(await folder.createPlain(name, bytes))) {
          throw new InvalidError('this hold writes the file twice concurrently', {
            hint: 'wait for the first write',
          })
        }
        await pointer.put(name)
      })
    },
    latest: () => contentOf(folder, async () => (await register.get())?.value as string | undefined),
    sweep: (hold, open = {}) =>
      guard.with(hold, open, async (pointer) => {
        const [current, token] = [await pointer.get(), tokenOf(hold, open)]
        const old = (await folder.list()).filter((entry) => entry.token < token && entry.name !== current)
        const names = old.map((entry) => entry.name).sort()
        const some = names.slice(0, SWEEP_FILES_MAX)
        await folder.remove(some)
        return some.length
      }),
  }
}

/**
 * Reads the file that `pointer` names. Retries, because the register may change and a sweep may delete the named file between the
 * two reads.
 */
async function contentOf(folder: Folder, pointer: () => Promise<string | undefined>): Promise<Uint8Array | null> {
  for (let attempt = 1; ; attempt++) {
    const name = await pointer()
    if (name === undefined) return null
    try {
      return await folder.read(name)
    } catch (error) {
      if (!isMissing(error) || attempt >= READ_ATTEMPTS_MAX) throw error
    }
  }
}

/** Returns the name of the next version that the hold of a token writes. @throws InvalidError after a million versions */
async function nextName(folder: Folder, token: bigint): Promise<string> {
  const numbers = versionsOf(await folder.list(), token)
  const number = Math.max(-1, ...numbers) + 1
  if (number >= 10 ** WRITE_DIGITS) throw new InvalidError(`one hold writes a file at most ${10 ** WRITE_DIGITS} times`)
  return fileOf(token, number)
}
