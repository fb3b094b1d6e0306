import type { Message, RaftOptions, Role } from '../../src/index.js'
import type { RaftRules } from '../../src/rules.js'
import { Hand } from '../hand.js'

/** A schedule's clock: its timeouts are 100 ms, its heartbeats come every 10. */
const TICK_MS = 10
const ELECTION_TICKS = 10
/** A schedule's member may need more than one period to come where the schedule wants it: ours checks quorums differently. */
const EXTRA_TICKS_MAX = 3 * ELECTION_TICKS
const ROUNDS_MAX = 200

const ROLES: Record<string, Role> = {
  Leader: 'leader',
  Follower: 'follower',
  Candidate: 'candidate',
  PreVoteCandidate: 'preCandidate',
}

export interface Played {
  /** Statements about roles that held, and all of them. */
  readonly held: number
  readonly stated: number
  readonly leaders: number
  readonly applied: number
}

/**
 * Replays a schedule of another core: the order of ticks, deliveries, losses and cut links. Terms and indexes are this core's own,
 * and all members exist from the start. The guarantees of Raft are checked after every line. At the end, with all links healed,
 * all members must reach the same log.
 */
export class Schedule {
  private readonly hand: Hand
  private readonly cuts = new Set<string>()
  private readonly leaders = new Map<number, number>()
  private readonly committed: { term: number; text: string }[] = []
  /** Schedule's term → our term. */
  private readonly terms = new Map<number, number>()
  private held = 0
  private stated = 0
  private periodic = -1
  private stick: boolean

  constructor(
    private readonly lines: readonly string[],
    options: Partial<RaftOptions & RaftRules> & { readonly sticky?: boolean },
  ) {
    const { sticky = true, ...rest } = options
    this.stick = sticky
    const ids = new Set([0])
    for (const line of lines) {
      const [command, ...args] = line.split(',')
      if (command === 'trust_nodes') for (const id of args.slice(1)) ids.add(Number(id))
      if (command === 'trust_node') ids.add(Number(args[1]))
    }
    const limits = { electionTicks: ELECTION_TICKS, heartbeatTicks: 1 }
    this.hand = new Hand([...ids].map((id) => id + 1).sort(), { ...rest, limits, random: () => 0 })
    this.hand.elect(1)
  }

  play(): Played {
    for (const line of this.lines) {
      try {
        this.run(line)
        this.check()
      } catch (error) {
        throw new Error(`at ${line}: ${(error as Error).message}`, { cause: error })
      }
    }
    this.converge()
    return { held: this.held, stated: this.stated, leaders: this.leaders.size, applied: this.committed.length }
  }

  private run(line: string): void {
    const [command = '', ...args] = line.split(',')
    const [a, b] = [Number(args[0]) + 1, Number(args[1]) + 1]
    if (command === 'periodic_one') this.tick(a, Number(args[1]) / TICK_MS)
    else if (command === 'periodic_all')
      for (const id of this.hand.rafts.keys()) this.tick(id, Number(args[0]) / TICK_MS)
    else if (command === 'dispatch_all') this.dispatchAll()
    else if (command === 'dispatch_one') this.deliver(this.hand.take((one) => one.from === a))
    else if (command === 'dispatch_single') this.deliver(this.first(a, b))
    else if (command === 'drop_pending') this.hand.take((one) => one.from === a)
    else if (command === 'drop_pending_to') this.hand.take((one) => one.from === a && one.to === b)
    else if (command === 'disconnect') this.cut(a, b)
    else if (command === 'reconnect') this.mend(a, b)
    else if (command === 'disconnect_node') for (const id of this.hand.rafts.keys()) this.cut(a, id)
    else if (command === 'reconnect_node') for (const id of this.hand.rafts.keys()) this.mend(a, id)
    else if (command === 'replicate' || command === 'emit_signature') this.propose(Number(args[0]), line)
    else if (command === 'assert_detail' && args[1] === 'leadership_state') this.expectRole(a, args[2] as string)
    else if (command === 'loop_until_sync') this.converge()
    else if (!/^(start_node|trust_nodes?|pre_vote_enabled|state_all|assert_\w+)$/.test(command)) {
      throw new Error(`unknown line ${line}`)
    }
    if (command === 'periodic_one') this.periodic = a
    else if (!command.startsWith('assert_')) this.periodic = -1
  }

  private tick(id: number, times: number): void {
    this.hand.tick(id, times)
  }

  private first(from: number, to: number): Message[] {
    const [first] = this.hand.inbox.filter((one) => one.from === from && one.to === to)
    return this.hand.take((one) => one === first)
  }

  private deliver(messages: readonly Message[]): void {
    for (const one of messages) {
      if (this.cuts.has(`${one.from}-${one.to}`)) continue
      // Schedules of a core without stickiness: a voter has forgotten its leader.
      if (!this.stick && (one.kind === 'vote' || one.kind === 'preVote')) this.hand.raft(one.to).forgetLeader()
      this.hand.give([one])
      this.check()
    }
  }

  private dispatchAll(): void {
    for (let round = 0; this.hand.inbox.length > 0; round++) {
      if (round > ROUNDS_MAX) throw new Error('messages without end')
      this.deliver(this.hand.take())
    }
  }

  private cut(a: number, b: number): void {
    if (a === b) return
    this.cuts.add(`${a}-${b}`)
    this.cuts.add(`${b}-${a}`)
  }

  private mend(a: number, b: number): void {
    this.cuts.delete(`${a}-${b}`)
    this.cuts.delete(`${b}-${a}`)
  }

  /** Proposes at the leader of a term: the first time that a term is named, it is the newest leader's. */
  private propose(term: number, text: string): void {
    const leading = [...this.hand.rafts.values()].filter(({ role }) => role === 'leader')
    if (!this.terms.has(term)) {
      const newest = Math.max(0, ...leading.map((raft) => raft.term))
      this.terms.set(term, newest)
    }
    const leader = leading.find((raft) => raft.term === this.terms.get(term))
    if (leader !== undefined) this.hand.propose(leader.id, text)
  }

  private expectRole(id: number, wanted: string): void {
    const raft = this.hand.raft(id)
    for (let i = 0; raft.role !== ROLES[wanted] && this.periodic === id && i < EXTRA_TICKS_MAX; i++) this.tick(id, 1)
    this.stated++
    if (raft.role === ROLES[wanted]) this.held++
  }

  /** Election safety, leader completeness and state machine safety (figure 3.2). */
  private check(): void {
    for (const [id, entries] of this.hand.applied) {
      entries.forEach(({ term, index, ...entry }, i) => {
        if (index !== i + 1) throw new Error(`node ${id} applied ${index} at place ${i + 1}`)
        const text = JSON.stringify('data' in entry ? [...entry.data] : entry)
        const known = this.committed[i]
        if (known === undefined) this.committed.push({ term, text })
        else if (known.term !== term || known.text !== text)
          throw new Error(`node ${id} applied another entry ${index}`)
      })
    }
    for (const [id, raft] of this.hand.rafts) {
      if (raft.role !== 'leader') continue
      const known = this.leaders.get(raft.term)
      if (known !== undefined && known !== id)
        throw new Error(`nodes ${known} and ${id} both lead in term ${raft.term}`)
      if (known !== undefined) continue
      this.leaders.set(raft.term, id)
      this.committed.forEach(({ term }, i) => {
        if (raft.termAt(i + 1) !== term) throw new Error(`leader ${id} of term ${raft.term} lacks entry ${i + 1}`)
      })
    }
  }

  private converge(): void {
    this.cuts.clear()
    for (let round = 0; round < ROUNDS_MAX; round++) {
      // Members tick in turns: equal draws must not make them stand for election together for ever.
      for (const id of this.hand.rafts.keys()) if (round % this.hand.rafts.size !== id - 1) this.tick(id, 1)
      this.dispatchAll()
      if (this.synced()) return
    }
    throw new Error('the members did not come to the same log')
  }

  private synced(): boolean {
    const rafts = [...this.hand.rafts.values()]
    const last = rafts[0]?.lastIndex
    const same = rafts.every((raft) => raft.lastIndex === last && raft.commit === last)
    return same && rafts.filter(({ role }) => role === 'leader').length === 1
  }
}

export function linesOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/#.*$/, '').trim())
  return lines.filter((line) => line !== '')
}
