import type { Entry, Raft } from '../../src/index.js'

interface Known {
  readonly term: number
  readonly text: string
  readonly digest: number
  /** The earliest term in which a member applied it: it was committed then. */
  committedIn: number
}

/** The global promises of Raft (figure 3.2), watched over the whole run. A broken one throws. */
export class Safety {
  /** By term: the leader, and the number of its start. */
  private readonly leaders = new Map<number, { readonly id: number; readonly life: number }>()
  /** The first applied entry at each index, and the digest of everything up to it. */
  private readonly log = new Map<number, Known>()
  private readonly reads = new Map<number, number>()
  private highest = 0

  get appliedTo(): number {
    return this.highest
  }

  /**
   * Election safety: at most one leader in a term, and in one of its lives (the next one knows nothing of what the first has
   * sent). Leader completeness: it has whatever was committed in earlier terms.
   */
  leads(raft: Raft, life: number): void {
    const { id } = raft
    const known = this.leaders.get(raft.term)
    if (known === undefined) {
      this.leaders.set(raft.term, { id, life })
      for (let index = raft.status.first; index <= this.highest; index++) {
        const ours = raft.termAt(index)
        const theirs = this.log.get(index)
        // A leader that is elected late may find that a later term has begun without it.
        if (theirs === undefined || theirs.committedIn >= raft.term || theirs.term === ours) continue
        throw new Error(`leader ${id} of term ${raft.term} lacks entry ${index} of term ${theirs.term} (has ${ours})`)
      }
    } else if (known.id !== id) throw new Error(`two leaders in term ${raft.term}: ${known.id} and ${id}`)
    else if (known.life !== life) throw new Error(`${id} leads in term ${raft.term} once more, after a restart`)
  }

  /** State machine safety: the same entry at the same index, everywhere, for ever. */
  applied({ id, term }: Raft, entry: Entry, digest: number): number {
    const text = entry.kind === 'normal' ? entry.data.join(',') : JSON.stringify(entry.change.steps)
    const next =
      (Math.imul(digest, 31) +
        entry.term * 7 +
        text.length * 13 +
        Array.from(text).reduce((sum, c) => (sum * 33 + c.charCodeAt(0)) | 0, 7)) |
      0
    const known = this.log.get(entry.index)
    if (known === undefined) {
      this.log.set(entry.index, { term: entry.term, text, digest: next, committedIn: term })
      this.highest = Math.max(this.highest, entry.index)
    } else if (known.term !== entry.term || known.text !== text || known.digest !== next) {
      throw new Error(
        `node ${id} applied ${entry.term}/${entry.index} ${text}, another had ${known.term} ${known.text} (digests ${next}, ${known.digest})`,
      )
    }
    if (known !== undefined) known.committedIn = Math.min(known.committedIn, term)
    return next
  }

  digestAt(index: number): number | undefined {
    return index === 0 ? 0 : this.log.get(index)?.digest
  }

  /** A read must see everything that had been applied anywhere when it was asked for. */
  readAsked(context: number): void {
    this.reads.set(context, this.highest)
  }

  readDone(context: number, index: number): void {
    const least = this.reads.get(context)
    if (least !== undefined && index < least)
      throw new Error(`read ${context} at index ${index}, but ${least} was applied before`)
    this.reads.delete(context)
  }

  /** Log matching, at the newest common entries of each pair. */
  check(rafts: readonly Raft[]): void {
    for (const a of rafts) {
      const index = a.commit
      const term = a.termAt(index)
      const known = this.log.get(index)
      if (term !== undefined && known !== undefined && known.term !== term)
        throw new Error(`node ${a.id} committed ${term}/${index}, applied was ${known.term}`)
    }
  }
}
