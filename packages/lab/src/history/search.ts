import type { ConfigurationCache } from './cache.js'
import { NO_NODE, type Timeline } from './timeline.js'
import type { Transitions } from './transitions.js'
import { zobristKeys } from './zobrist.js'

/** When to give up. */
export interface SearchLimits {
  readonly maxSteps: number
  readonly maxStates: number
  /** Asked every {@link STEPS_PER_LOOK} steps. */
  readonly isTimeUp: () => boolean
}

/** Where a search got furthest: everything before that return can be put in order, it cannot. */
export interface Blockade {
  /** The operation that cannot be placed before it returns. */
  readonly operation: number
  /** States in which the operation was tried; at most {@link MAX_BLOCKED_STATES}. */
  readonly states: readonly number[]
  /** The last operations of the first order that got here; at most {@link MAX_RECENT}. */
  readonly recent: readonly number[]
  /** Operations called before that return and not placed in that order, without the blocked one. */
  readonly open: readonly number[]
}

export type SearchResult =
  | { readonly verdict: 'linearizable'; readonly steps: number; readonly order: readonly number[] }
  | { readonly verdict: 'not-linearizable'; readonly steps: number; readonly blockade: Blockade }
  | { readonly verdict: 'unknown'; readonly steps: number; readonly reason: 'time' | 'steps' | 'memory' }

const STEPS_PER_LOOK = 512
const MAX_BLOCKED_STATES = 6
const MAX_RECENT = 8
const EXHAUSTED = -2

/**
 * Looks for an order of the operations that their model allows (Wing and Gong 1993, with Lowe's memory of configurations
 * seen). No recursion. Two short cuts keep it small:
 * an acknowledged operation that is possible and changes nothing is placed at once and for good, because any order with it
 * later also works with it here; and of equal operations of unknown outcome the earliest called is placed first.
 */
export class Search {
  private readonly set: Int32Array
  private readonly keys
  private readonly twin: Int32Array
  private readonly stack: Int32Array
  private readonly stackStates: Int32Array
  private readonly stackChoices: Int32Array
  private depth = 0
  private state: number
  private high = 0
  private low = 0
  private left = 0
  private blockedNode = NO_NODE
  private blocked: Blockade | undefined

  constructor(
    private readonly timeline: Timeline,
    private readonly transitions: Transitions,
    private readonly cache: ConfigurationCache,
  ) {
    const count = timeline.operations.length
    this.set = new Int32Array(wordsFor(count))
    this.keys = zobristKeys(count)
    this.twin = twins(timeline, transitions)
    this.stack = new Int32Array(count)
    this.stackStates = new Int32Array(count)
    this.stackChoices = new Int32Array(count)
    this.state = transitions.initial
    for (const operation of timeline.operations) if (operation.outcome === 'ok') this.left++
  }

  /** Runs to the end or to a limit. To be called once. */
  run(limits: SearchLimits): SearchResult {
    let node = this.timeline.next[0] as number
    let choice = 0
    for (let steps = 0; ; steps++) {
      if (this.left === 0) return { verdict: 'linearizable', steps, order: [...this.stack.subarray(0, this.depth)] }
      const reason = this.limitReached(steps, limits)
      if (reason !== undefined) return { verdict: 'unknown', steps, reason }

      let back = node === NO_NODE || this.timeline.isReturn(node)
      if (back) {
        this.noteBlockade(node)
      } else {
        const placed = this.place(node, choice)
        if (placed === 'full') return { verdict: 'unknown', steps, reason: 'memory' }
        if (placed === 'placed') {
          node = this.timeline.next[0] as number
          choice = 0
          continue
        }
        back = placed === 'hopeless'
      }
      if (!back) {
        node = this.timeline.next[node] as number
        choice = 0
        continue
      }
      const resumed = this.takeBack()
      if (resumed === EXHAUSTED) return { verdict: 'not-linearizable', steps, blockade: this.blocked as Blockade }
      node = this.timeline.callOf[resumed] as number
      choice = (this.stackChoices[this.depth] as number) + 1
    }
  }

  private limitReached(steps: number, limits: SearchLimits): 'time' | 'steps' | 'memory' | undefined {
    if (steps >= limits.maxSteps) return 'steps'
    if (steps % STEPS_PER_LOOK !== STEPS_PER_LOOK - 1) return undefined
    if (this.transitions.stateCount > limits.maxStates) return 'memory'
    return limits.isTimeUp() ? 'time' : undefined
  }

  /** Places the operation called at this node, by its first possible outcome from `choice` on that was not seen before. */
  private place(node: number, choice: number): 'placed' | 'impossible' | 'hopeless' | 'full' {
    const operation = this.timeline.operationAt[node] as number
    const isOpenEnded = this.timeline.returnOf[operation] === NO_NODE
    if (isOpenEnded && this.isBehindTwin(operation)) return 'impossible'
    const outcomes = this.transitions.next(this.state, this.transitions.kinds[operation] as number)
    const changesNothing = outcomes.length === 1 && outcomes[0] === this.state
    if (changesNothing && isOpenEnded) return 'impossible'
    for (let i = choice; i < outcomes.length; i++) {
      const next = outcomes[i] as number
      this.flip(operation)
      const answer = this.cache.add(this.set, this.high, this.low, next)
      if (answer === 'new') {
        this.push(operation, i, changesNothing, next)
        return 'placed'
      }
      this.flip(operation)
      if (answer === 'full') return 'full'
      if (changesNothing) return 'hopeless'
    }
    return 'impossible'
  }

  private push(operation: number, choice: number, isForGood: boolean, next: number): void {
    this.timeline.lift(operation)
    this.stack[this.depth] = operation
    this.stackStates[this.depth] = this.state
    this.stackChoices[this.depth] = isForGood ? -1 : choice
    this.depth++
    this.state = next
    if (this.timeline.returnOf[operation] !== NO_NODE) this.left--
  }

  /** Undoes placements up to the last one with an alternative; answers its operation. */
  private takeBack(): number {
    while (this.depth > 0) {
      this.depth--
      const operation = this.stack[this.depth] as number
      this.state = this.stackStates[this.depth] as number
      this.timeline.putBack(operation)
      this.flip(operation)
      if (this.timeline.returnOf[operation] !== NO_NODE) this.left++
      if (this.stackChoices[this.depth] !== -1) return operation
    }
    return EXHAUSTED
  }

  private flip(operation: number): void {
    const word = operation >>> 5
    this.set[word] = (this.set[word] as number) ^ (1 << (operation & 31))
    this.high ^= this.keys.high[operation] as number
    this.low ^= this.keys.low[operation] as number
  }

  private has(operation: number): boolean {
    return ((this.set[operation >>> 5] as number) & (1 << (operation & 31))) !== 0
  }

  private isBehindTwin(operation: number): boolean {
    const twin = this.twin[operation] as number
    return twin >= 0 && !this.has(twin)
  }

  private noteBlockade(node: number): void {
    if (node < this.blockedNode || node === NO_NODE) return
    if (node > this.blockedNode) {
      this.blockedNode = node
      this.blocked = this.blockadeAt(node)
    }
    const states = (this.blocked as Blockade).states as number[]
    if (states.length < MAX_BLOCKED_STATES && !states.includes(this.state)) states.push(this.state)
  }

  private blockadeAt(node: number): Blockade {
    const operation = this.timeline.operationAt[node] as number
    const open: number[] = []
    for (let at = this.timeline.next[0] as number; at !== node; at = this.timeline.next[at] as number) {
      const other = this.timeline.operationAt[at] as number
      if (other !== operation) open.push(other)
    }
    return {
      operation,
      states: [],
      recent: [...this.stack.subarray(Math.max(0, this.depth - MAX_RECENT), this.depth)],
      open,
    }
  }
}

/** Words of 32 bits that hold a set of so many operations. */
export function wordsFor(count: number): number {
  return Math.max(1, Math.ceil(count / 32))
}

/** For each operation of unknown outcome the one of the same kind called before it, or -1. */
function twins(timeline: Timeline, transitions: Transitions): Int32Array {
  const last = new Int32Array(transitions.kindCount).fill(-1)
  return timeline.operations.reduce((twin, operation, i) => {
    const kind = transitions.kinds[i] as number
    twin[i] = -1
    if (operation.outcome === 'unknown') {
      twin[i] = last[kind] as number
      last[kind] = i
    }
    return twin
  }, new Int32Array(timeline.operations.length))
}
