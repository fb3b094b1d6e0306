import * as nodeFs from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { InvalidError, padToken } from '@leasehold/core'
import { type FileSystem, Folder } from './fs/folder.js'
import type { OpenOptions } from './common/guard.js'
import { describe, type GuardableHold } from './common/hold.js'
import { fence as fenceRegister, type GuardableRegister } from './register.js'
import { singleTarget } from './common/single-target.js'

export interface ArbitratedFileOptions {
  /** Default: `node:fs/promises`. */
  readonly fs?: FileSystem
}

/** A file whose current version is named by a register of Leasehold. */
export interface ArbitratedFile {
  /** The current version under this hold; null if nothing was ever written. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Uint8Array | null>
  /** Writes a new version, and lets the service make it the current one: only while the hold exists. One write at a time. */
  write(hold: GuardableHold, content: Uint8Array | string, options?: OpenOptions): Promise<void>
  /** For readers without a lock: the current version. */
  latest(): Promise<Uint8Array | null>
  /** Deletes versions of earlier holds that are not the current one, at most 1 000 files. Answers how many. */
  sweep(hold: GuardableHold, options?: OpenOptions): Promise<number>
}

const SWEEP_FILES_MAX = 1_000
const WRITE_DIGITS = 6
/** Who reads while a sweep deletes begins again, so often. */
const READ_ATTEMPTS_MAX = 10

/**
 * A file with Leasehold as the arbiter, for file systems that offer no more than creating files. Each write makes a file beside
 * `path`, named by token; the register, fenced by the hold, says which one counts. A writer that is late leaves a file that nobody
 * reads.
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

  /** The pointer may move, and what it named be swept, between the two looks. */
  const contentOf = async (pointer: () => Promise<string | undefined>): Promise<Uint8Array | null> => {
    for (let attempt = 1; ; attempt++) {
      const name = await pointer()
      if (name === undefined) return null
      try {
        return await folder.read(name)
      } catch (error) {
        if ((error as { code?: string }).code !== 'ENOENT' || attempt >= READ_ATTEMPTS_MAX) throw error
      }
    }
  }

  return {
    read: (hold, open = {}) => guard.with(hold, open, (pointer) => contentOf(() => pointer.get())),
    async write(hold, content, open = {}) {
      if (typeof content !== 'string' && !(content instanceof Uint8Array)) {
        throw new InvalidError(`the content of a file is text or bytes, not ${describe(content)}`)
      }
      const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
      await guard.with(hold, open, async (pointer) => {
        const token = tokenOf(hold, open)
        const numbers = (await folder.list()).flatMap(({ token: other, what }) =>
          other === token && typeof what === 'number' ? [what] : [],
        )
        const number = Math.max(-1, ...numbers) + 1
        if (number >= 10 ** WRITE_DIGITS)
          throw new InvalidError(`one hold writes a file at most ${10 ** WRITE_DIGITS} times`)
        const name = `${padToken(token)}.${String(number).padStart(WRITE_DIGITS, '0')}`
        await pointer.get()
        if (!(await folder.createPlain(name, bytes))) {
          throw new InvalidError('this hold writes the file twice at the same time', {
            hint: 'wait for the first write',
          })
        }
        await pointer.put(name)
      })
    },
    latest: () => contentOf(async () => (await register.get())?.value as string | undefined),
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
