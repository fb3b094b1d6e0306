import { randomBytes } from 'node:crypto'
import * as nodeFs from 'node:fs/promises'
import { join } from 'node:path'
import { InvalidError, StorageError } from '@leasehold/core'

/** What the guard uses of `node:fs/promises`. */
export type FileSystem = Pick<typeof nodeFs, 'open' | 'link' | 'unlink' | 'readdir' | 'readFile'>

/**
 * One file of the guard, named `NAME.TOKEN.WHAT`. `open`: a hold with this token was here. `base`: which version its holder
 * starts from. A number: a version, the n-th that this hold has written.
 */
export interface Entry {
  readonly name: string
  readonly token: bigint
  readonly what: 'open' | 'base' | number
}

const ENTRY = /^(\d{19})\.(open|base|\d{6})$/
/** A file that is being written, or that a crash has left. */
const UNFINISHED = /^(\d{19})\.(?:open|base|\d{6})\.tmp-[0-9a-f]+$/

/** The files of one guarded path. Whatever is there is complete: files appear under their name by `link`, or not at all. */
export class Folder {
  readonly #folder: string
  readonly #prefix: string
  readonly #fs: FileSystem
  #settled: string | undefined

  constructor(folder: string, prefix: string, fs: FileSystem) {
    this.#folder = folder
    this.#prefix = prefix
    this.#fs = fs
  }

  /** Every file that was there when the call began, and perhaps some that came meanwhile. */
  async list(): Promise<Entry[]> {
    const names = await this.#fs.readdir(this.#folder)
    const entries: Entry[] = []
    for (const full of names) {
      if (!full.startsWith(this.#prefix)) continue
      const name = full.slice(this.#prefix.length)
      const match = ENTRY.exec(name)
      if (match === null) continue
      const [, token, what] = match as unknown as [string, string, string]
      entries.push({ name, token: BigInt(token), what: what === 'open' || what === 'base' ? what : Number(what) })
    }
    return entries
  }

  /** Names of files below a token that were never finished. Whoever still writes one is late. */
  async unfinishedBelow(token: bigint): Promise<string[]> {
    const names = await this.#fs.readdir(this.#folder)
    const own = names.filter((full) => full.startsWith(this.#prefix)).map((full) => full.slice(this.#prefix.length))
    return own.filter((name) => {
      const match = UNFINISHED.exec(name)
      return match !== null && BigInt(match[1] as string) < token
    })
  }

  read(name: string): Promise<Uint8Array> {
    return this.#fs.readFile(this.#path(name))
  }

  /** Creates a file with its bytes, durably; false if there is one of that name already. */
  async create(name: string, bytes: Uint8Array): Promise<boolean> {
    const temporary = this.#path(`${name}.tmp-${randomBytes(8).toString('hex')}`)
    try {
      await this.#writeNew(temporary, bytes)
      return await this.#link(temporary, this.#path(name))
    } catch (error) {
      throw explain(error)
    } finally {
      await this.#fs.unlink(temporary).catch(() => {})
    }
  }

  /**
   * Creates a file under its own name at once, durably, where links are not to be had; false if there is one already. Others may
   * see it unfinished: it must not count before something else names it.
   */
  async createPlain(name: string, bytes: Uint8Array): Promise<boolean> {
    try {
      await this.#writeNew(this.#path(name), bytes)
      await this.#syncFolder()
      return true
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      throw explain(error)
    }
  }

  /**
   * Makes the names durable that are there already: the process that made them may have been killed before its sync. Once for each
   * `name`, since what this process creates itself is durable.
   */
  async settle(name: string): Promise<void> {
    if (this.#settled === name) return
    await this.#syncFolder()
    this.#settled = name
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#fs.unlink(this.#path(name)).catch(ignoreMissing)
  }

  async #link(from: string, to: string): Promise<boolean> {
    try {
      await this.#fs.link(from, to)
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      throw error
    }
    await this.#syncFolder()
    return true
  }

  async #writeNew(path: string, bytes: Uint8Array): Promise<void> {
    const file = await this.#fs.open(path, 'wx')
    try {
      await file.writeFile(bytes)
      await file.sync()
    } finally {
      await file.close()
    }
  }

  async #syncFolder(): Promise<void> {
    const folder = await this.#fs.open(this.#folder, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }

  #path(name: string): string {
    return join(this.#folder, this.#prefix + name)
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code
}

function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}

function explain(error: unknown): unknown {
  const message = error instanceof Error ? error.message : String(error)
  switch (codeOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EIO':
      return new StorageError(`the file cannot be written: ${message}`, { cause: error })
    case 'EPERM':
    case 'ENOTSUP':
    case 'ENOSYS':
      return new InvalidError(`the guard needs a file system with hard links: ${message}`, { cause: error })
    default:
      return error
  }
}
