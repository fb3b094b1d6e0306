import type { Inspection, PeekedMessage } from '@leasehold/replica'
import type { Violations } from './violation.js'

interface Promised {
  /** The highest term in which it has voted, acknowledged or led. */
  term: number
  readonly vote: { term: number; to: number }
  /** How far it has acknowledged the log of the leader of this term. */
  readonly log: { term: number; index: number }
}

/**
 * What a member has promised to others with its messages must still be on its disk in its next life, or it must not begin
 * one: elections and commits of others rest on it. By node, since a member on an empty disk is another node.
 */
export class PersistedPromiseChecker {
  readonly #promised = new Map<number, Promised>()

  readonly #violations: Violations

  constructor(violations: Violations) {
    this.#violations = violations
  }

  /** A member says this to another one. */
  says({ kind, from, to, term, index, reject }: PeekedMessage): void {
    if (reject) return
    if (kind === 'voteReply') {
      const promised = this.#of(from, term)
      if (term >= promised.vote.term) Object.assign(promised.vote, { term, to })
    } else if (kind === 'appendReply') {
      const { log } = this.#of(from, term)
      if (term > log.term) Object.assign(log, { term, index })
      else if (term === log.term) log.index = Math.max(log.index, index)
    } else if (kind === 'append' || kind === 'heartbeat') this.#of(from, term)
  }

  /** A member has begun another life, with what is on its disk. */
  begins(name: string, { id, term, vote, last }: Pick<Inspection['raft'], 'id' | 'term' | 'vote' | 'last'>): void {
    const promised = this.#promised.get(id)
    if (!promised) return
    const say = (text: string): void => this.#violations.report('L5', `${name} begins again ${text}`)
    if (term < promised.term) say(`in term ${term}, and was in term ${promised.term} for others`)
    else if (term === promised.vote.term && vote !== promised.vote.to) {
      say(`with its vote of term ${term} for ${vote || 'none'}, and had told ${promised.vote.to} of it`)
    } else if (term === promised.log.term && last < promised.log.index) {
      say(`with a log up to ${last}, and had acknowledged ${promised.log.index} in term ${term}`)
    }
  }

  /** The disk of a member was set back on purpose: what it has promised is lost, and the others have to find that out. */
  setBack(node: number): void {
    this.#promised.delete(node)
  }

  #of(node: number, term: number): Promised {
    let promised = this.#promised.get(node)
    if (!promised) {
      promised = { term, vote: { term: 0, to: 0 }, log: { term: 0, index: 0 } }
      this.#promised.set(node, promised)
    }
    promised.term = Math.max(promised.term, term)
    return promised
  }
}
