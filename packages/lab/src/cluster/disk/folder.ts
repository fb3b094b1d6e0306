import type { Inode } from './inode.js'

/** A change of the folder that no sync of the folder has made durable yet. */
type Change =
  | { readonly kind: 'link'; readonly name: string; readonly inode: Inode }
  | { readonly kind: 'unlink'; readonly name: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }

/** The names of a flat folder: those that programs see, and those that a crash would leave. */
export class Folder {
  readonly names = new Map<string, Inode>()
  #durable = new Map<string, Inode>()
  #changes: Change[] = []

  link(name: string, inode: Inode): void {
    this.#record({ kind: 'link', name, inode })
  }

  unlink(name: string): void {
    this.#record({ kind: 'unlink', name })
  }

  rename(from: string, to: string): void {
    this.#record({ kind: 'rename', from, to })
  }

  /** All changes are durable. */
  sync(): void {
    this.#durable = new Map(this.names)
    this.#changes = []
  }

  /**
   * After a crash: of the changes since the last sync those are there for which `kept` says so. `inOrder`: as a journal
   * does it, nothing after the first one that is lost.
   */
  crash(kept: () => boolean, inOrder: boolean): void {
    const names = this.#durable
    for (const change of this.#changes) {
      if (kept()) apply(names, change)
      else if (inOrder) break
    }
    this.names.clear()
    for (const [name, inode] of names) this.names.set(name, inode)
    this.sync()
  }

  #record(change: Change): void {
    apply(this.names, change)
    this.#changes.push(change)
  }
}

function apply(names: Map<string, Inode>, change: Change): void {
  if (change.kind === 'link') names.set(change.name, change.inode)
  else if (change.kind === 'unlink') names.delete(change.name)
  else {
    const inode = names.get(change.from)
    if (!inode) return
    names.delete(change.from)
    names.set(change.to, inode)
  }
}
