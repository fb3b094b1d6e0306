import * as fs from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import type { FolderState } from '../../platform.js'
import { highestOf, type OwnerRecord } from './owner-record.js'
import type { SocketFolder } from './owner-socket.js'

export interface FolderFacts {
  readonly device: number
  readonly inode: number
}

/** The exclusive right to write into a data folder. */
export interface FolderOwner {
  /** Increases with every owner. */
  readonly number: number
  /** Device and inode of the folder at the claim. For the log only. */
  readonly facts: FolderFacts
  /** Checks without blocking that the folder at the path is the claimed one, and that no later owner exists. */
  check(done: (state: FolderState) => void): void
  /** Releases the folder. The next owner can claim it without a takeover. */
  release(): Promise<void>
}

export interface Claim {
  /** Absolute path, independent of the working directory. */
  readonly dir: string
  readonly number: number
  readonly nonce: string
  readonly sockets: SocketFolder
  readonly server: Server
}

const FACTS_LIMIT_MS = 200

/** Nothing is at the path, or a part of the path is not a folder. */
const GONE = new Set(['ENOENT', 'ENOTDIR'])
/** The device, server or program behind the file system is gone. */
const FAILING = new Set(['ESTALE', 'ENODEV', 'EIO', 'ENXIO', 'ENOTCONN', 'EREMOTEIO'])

/** Converts an error of a call by path to a folder state. */
export function stateOf(error: NodeJS.ErrnoException): FolderState {
  const why = error.message
  if (GONE.has(error.code ?? '')) return { kind: 'lost', why }
  return { kind: FAILING.has(error.code ?? '') ? 'failing' : 'unknown', why }
}

export class OwnedFolder implements FolderOwner {
  readonly #claim: Claim
  readonly number: number
  readonly facts: FolderFacts
  readonly #file: string
  #released = false

  constructor(claim: Claim) {
    this.#claim = claim
    this.number = claim.number
    this.#file = join(claim.dir, `owner.${claim.number}`)
    this.facts = factsOf(fs.statSync(claim.dir))
  }

  async release(): Promise<void> {
    if (this.#released) return
    this.#released = true
    await new Promise<void>((resolve) => this.#claim.server.close(() => resolve()))
    this.#claim.sockets.close()
  }

  check(done: (state: FolderState) => void): void {
    fs.readFile(this.#file, 'utf8', (error, text) => {
      const state = error ? stateOf(error) : undefined
      if (state && state.kind !== 'lost') return done(state)
      fs.readdir(this.#claim.dir, (folderError, names) => {
        if (folderError) return this.#reportLost(this.#unlisted(folderError), done)
        if (highestOf(names) > this.number) {
          const hint = 'only one process may own a folder: stop the other one before you start this one again'
          return this.#reportLost(
            { kind: 'lost', why: `${this.#claim.dir} was taken over by another process`, hint },
            done,
          )
        }
        if (state) return this.#reportLost({ kind: 'lost', why: `${this.#missing()}: ${state.why}` }, done)
        if (nonceOf(text) === this.#claim.nonce) return done({ kind: 'own' })
        this.#reportLost(
          {
            kind: 'lost',
            why: `${this.#claim.dir} is not the folder of this member any more: ${this.#file} is of another owner`,
          },
          done,
        )
      })
    })
  }

  #unlisted(error: NodeJS.ErrnoException): FolderState {
    const state = stateOf(error)
    if (state.kind !== 'lost') return state
    return { kind: 'lost', why: `the data folder ${this.#claim.dir} is gone (deleted, renamed or unmounted)` }
  }

  #missing(): string {
    return `${this.#file} is gone: it was deleted, or another folder is at ${this.#claim.dir} now`
  }

  /** Adds device and inode to a loss. They are informational, since some file systems change them without reason. */
  #reportLost(state: FolderState, done: (state: FolderState) => void): void {
    if (state.kind !== 'lost') return done(state)
    const finish = (now: Partial<FolderFacts>): void => {
      clearTimeout(timer)
      if (told) return
      told = true
      done({ ...state, facts: { deviceAtStart: this.facts.device, inodeAtStart: this.facts.inode, ...now } })
    }
    let told = false
    // The report of the loss must not wait for them.
    const timer = setTimeout(finish, FACTS_LIMIT_MS, {})
    fs.stat(this.#claim.dir, (error, stats) => finish(error ? {} : factsOf(stats)))
  }
}

function factsOf({ dev, ino }: fs.Stats): FolderFacts {
  return { device: dev, inode: ino }
}

function nonceOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as Partial<OwnerRecord> | null)?.nonce
  } catch {
    return undefined
  }
}
