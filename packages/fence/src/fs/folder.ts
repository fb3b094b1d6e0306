import { randomBytes } from 'node:crypto'
import * as nodeFs from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, explain, ignoreMissing } from './errors.js'

/** What the guard uses of `node:fs/promises`. */
export type FileSystem = Pick<typeof nodeFs, 'open' | 'link' | 'unlink' | 'readdir' | 'readFile'>

/**
 * One file of the guard, named `NAME.TOKEN.WHAT`. `open` is the mark of a hold with this token. `base` names the version from
 * which this hold starts. A number n is the n-th version that this hold has written.
 */
export interface Entry {
  readonly name: string
  readonly token: bigint
  readonly what: 'open' | 'base' | number
}

const ENTRY = /^(\d{19})\.(open|base|\d{6})$/
/** A file that is being written, or that a crash has left behind. */
const UNFINISHED = /^(\d{19})\.(?:open|base|\d{6})\.tmp-[0-9a-f]+$/

/** The files of one guarded path. Every file is complete, because `link` creates it under its final name. */
export class Folder {
  readonly #folder: string
  readonly #prefix: string
  readonly #fs: FileSystem
  #synced: string | undefined

  constructor(folder: string, prefix: string, fs: FileSystem) {
    this.#folder = folder
    this.#prefix = prefix
    this.#fs = fs
  }

  /** Returns every file that existed when the call began, and possibly some that were created since. */
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

  /** Returns the names of unfinished files below a token. A process that still writes one has lost its hold. */
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

  /** Creates a file durably; returns false if it exists. */
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
   * Creates a file durably without a link, for file systems that have none; returns false if it exists. Other processes may see
   * it unfinished, so it must not count before something else refers to it.
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
   * Syncs the folder, because another process may have created `name` and been killed before its sync. Does so once per `name`:
   * files that this process creates are durable already.
   */
  async syncOnce(name: string): Promise<void> {
    if (this.#synced === name) return
    await this.#syncFolder()
    this.#synced = name
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
