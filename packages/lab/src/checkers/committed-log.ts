import {
  type Applied,
  decodeEntry,
  type Index,
  type Limits,
  LockState,
  type Entry as LockEntry,
  type Millis,
} from '@leasehold/core'
import type { Entry } from '@leasehold/raft'
import type { Violations } from './violation.js'

const NOTHING: LockEntry = { at: 0 as Millis, commands: [] }

/** What the first member that applied an entry made of it. */
export interface Canonical {
  readonly index: Index
  readonly term: number
  readonly entry: LockEntry
  readonly applied: Applied
}

/**
 * The one log that all members must agree on: written once, entry by entry, by the member that applies it first, and applied to
 * a state of the checker's own. Every other member, and every later life of one, must come to the same term and state.
 */
export class CommittedLog {
  readonly state: LockState
  readonly #terms: number[] = [0]
  readonly #hashes: string[]
  readonly #committed = new Map<number, number>()
  readonly #leaders = new Map<number, string>()

  readonly #violations: Violations
  /** Hears of every entry once, in order. */
  readonly #listener: (canonical: Canonical) => void

  constructor(
    violations: Violations,
    founding: { readonly epoch: number; readonly limits?: Partial<Limits> } | LockState,
    listener: (canonical: Canonical) => void,
    /** Index and term of the snapshot that `founding` stands for. */
    base: { readonly index: number; readonly term: number } = { index: 0, term: 0 },
  ) {
    this.#violations = violations
    this.#listener = listener
    this.state = founding instanceof LockState ? founding : LockState.create(founding)
    this.#hashes = [this.state.hash()]
    this.#first = base.index
    this.#terms[0] = base.term
  }

  readonly #first: number

  get last(): number {
    return this.#first + this.#terms.length - 1
  }

  /** A member has applied an entry. */
  applied(
    member: string,
    index: number,
    term: number,
    hash: string,
    entryAt: (index: number) => Entry | undefined,
  ): void {
    if (index > this.last + 1) {
      this.#violations.report('L3', `${member} applied entry ${index}, and no member has applied ${this.last + 1}`)
      return
    }
    if (index === this.last + 1) this.#append(member, index, term, hash, entryAt(index))
    else this.#compare(member, index, term, hash)
  }

  /**
   * A member has installed a snapshot, or begins from what is on its disk. It may have applied committed entries before
   * anybody looked on: a member that died between the commit and its applying leaves them to its next life.
   */
  begins(
    member: string,
    index: number,
    term: number,
    hash: string,
    entryAt: (index: number) => Entry | undefined,
  ): void {
    while (this.last < index) {
      const next = this.last + 1
      const entry = entryAt(next)
      if (!entry) return this.#violations.report('L3', `${member} has applied entry ${next}, and does not have it`)
      this.#append(member, next, next === index ? term : entry.term, next === index ? hash : undefined, entry)
    }
    this.#compare(member, index, term, hash)
  }

  /** A member says that an entry is committed. */
  isCommitted(member: string, index: number, term: number): void {
    const known = this.#committed.get(index) ?? this.#termAt(index)
    if (known === undefined) this.#committed.set(index, term)
    else if (known !== term) {
      this.#violations.report(
        'L2',
        `${member} has committed entry ${index} of term ${term}, it was of term ${known} before`,
      )
    }
  }

  leads(member: string, term: number): void {
    const known = this.#leaders.get(term)
    if (known === undefined) this.#leaders.set(term, member)
    else if (known !== member) this.#violations.report('L1', `${known} and ${member} both lead in term ${term}`)
  }

  #termAt(index: number): number | undefined {
    return this.#terms[index - this.#first]
  }

  #append(member: string, index: number, term: number, hash: string | undefined, entry: Entry | undefined): void {
    if (!entry) {
      this.#violations.report('L3', `${member} applied entry ${index}, and its log does not have it`)
      return
    }
    const content = entry.kind === 'normal' && entry.data.length > 0 ? decodeEntry(entry.data) : NOTHING
    const applied = this.state.apply(content, index as Index)
    const own = this.state.hash()
    this.#terms.push(term)
    this.#hashes.push(own)
    this.isCommitted(member, index, term)
    this.#committed.delete(index)
    if (hash !== undefined && own !== hash) {
      this.#violations.report('I13', `after entry ${index} the state of ${member} is ${hash}, the checker has ${own}`)
    }
    this.#listener({ index: index as Index, term, entry: content, applied })
  }

  #compare(member: string, index: number, term: number, hash: string): void {
    if (index < this.#first) return
    const known = this.#termAt(index)
    if (known !== term) {
      this.#violations.report('L2', `${member} applied entry ${index} of term ${term}, it was of term ${known} before`)
      return
    }
    const other = this.#hashes[index - this.#first]
    if (other !== hash)
      this.#violations.report('I13', `after entry ${index} the state of ${member} is ${hash}, others had ${other}`)
  }
}
