import type { Message, NodeId, Term } from '@leasehold/raft'

/** How far a term may be above the known ones. Each election raises it by one. */
export const TERM_STEP_MAX = 2 ** 20

/**
 * Rejects messages that no correct member sends, before anything of them becomes durable. A member stores a higher term as
 * soon as it sees it, so a single message with a huge term would make every member unusable, also after a restart.
 *
 * A term may be up to {@link TERM_STEP_MAX} above the own term, or above the term that a majority of the members has
 * reported since the start: a member that was offline for long must be able to return. A member that knows no others yet,
 * because it is about to receive its first snapshot, accepts every term.
 */
export class TermGuard {
  /** The highest term that each member has reported. */
  readonly #reported = new Map<NodeId, Term>()
  #members: ReadonlySet<NodeId> = new Set()

  /** `members`: all of them, with this one. */
  setMembers(members: Iterable<NodeId>): void {
    this.#members = new Set(members)
    for (const node of this.#reported.keys()) if (!this.#members.has(node)) this.#reported.delete(node)
  }

  /** Why a message is rejected; undefined if it may be stepped. */
  problemOf({ kind, from, term }: Message, own: Term): string | undefined {
    // Members send proposals nowhere: clients talk to the leader.
    if (kind === 'propose') return 'a forwarded proposal, which no member sends'
    if (term <= own + TERM_STEP_MAX || this.#members.size < 2) return undefined
    if (this.#members.has(from)) this.#reported.set(from, Math.max(term, this.#reported.get(from) ?? 0))
    let agreeing = 0
    for (const reported of this.#reported.values()) if (term <= reported + TERM_STEP_MAX) agreeing += 1
    if (agreeing > this.#members.size / 2) return undefined
    return `term ${term} is more than ${TERM_STEP_MAX} above ${own}, and ${agreeing} of ${this.#members.size} members report it`
  }
}
