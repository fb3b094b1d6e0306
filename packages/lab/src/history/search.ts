import type { ConfigurationCache } from './cache.js'
import type { Placement } from './placement.js'
import { NO_NODE, type EntryList } from './entry-list.js'
import type { Transitions } from './transitions.js'

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
/** In place of a choice: this placement needs no alternative. */
const FOR_GOOD = -1

/**
 * Looks for an order of the operations that their model allows (Wing and Gong 1993, with Lowe's memory of configurations
 * seen). No recursion. Required operations are tried before those of unknown outcome, and four short cuts keep it small:
 * - an acknowledged read that is possible and changes nothing is placed at once and permanently: any order with it later also
 *   works with it here. (A write of the present value is no such operation: later it may change something.)
 * - of equal operations of unknown outcome the earliest called is placed first;
 * - an operation of unknown outcome is not placed right after another one without which it would lead to the same state;
 * - a configuration that has only spent more operations of unknown outcome than one seen before is not looked at.
 */
export class Search {
  readonly #twin: Int32Array
  readonly #stack: Int32Array
  readonly #stackStates: Int32Array
  readonly #stackChoices: Int32Array
  #depth = 0
  #state: number
  /** Required operations not placed. */
  #left = 0
  /** Where the search is: a node of the list and, if that is a return, the next operation of unknown outcome to try. */
  #node: number
  #openIndex = 0
  /** Which of the outcomes of that operation is next. */
  #choice = 0
  #blockedNode = NO_NODE
  #blocked: Blockade | undefined

  readonly #entries: EntryList
  readonly #transitions: Transitions
  readonly #placement: Placement
  readonly #cache: ConfigurationCache

  constructor(entries: EntryList, transitions: Transitions, placement: Placement, cache: ConfigurationCache) {
    this.#entries = entries
    this.#transitions = transitions
    this.#placement = placement
    this.#cache = cache
    const count = entries.operations.length
    this.#twin = twins(entries, transitions)
    this.#stack = new Int32Array(count)
    this.#stackStates = new Int32Array(count)
    this.#stackChoices = new Int32Array(count)
    this.#state = transitions.initial
    this.#node = entries.first
    for (let i = 0; i < count; i++) if (entries.isRequired(i)) this.#left++
  }

  /** Runs to the end or to a limit. To be called once. */
  run(limits: SearchLimits): SearchResult {
    for (let steps = 0; ; steps++) {
      if (this.#left === 0) return { verdict: 'linearizable', steps, order: [...this.#stack.subarray(0, this.#depth)] }
      const reason = this.#limitReached(steps, limits)
      if (reason !== undefined) return { verdict: 'unknown', steps, reason }
      const operation = this.#candidate()
      const placed = operation === undefined ? 'stuck' : this.#place(operation)
      if (placed === 'full') return { verdict: 'unknown', steps, reason: 'memory' }
      if (placed === 'placed') {
        this.#node = this.#entries.first
        this.#openIndex = 0
        this.#choice = 0
      } else if (placed === 'impossible') {
        this.#advance()
      } else {
        if (placed === 'stuck') this.#noteBlockade()
        if (!this.#takeBack()) return { verdict: 'not-linearizable', steps, blockade: this.#blocked as Blockade }
      }
    }
  }

  #limitReached(steps: number, limits: SearchLimits): 'time' | 'steps' | 'memory' | undefined {
    if (steps >= limits.maxSteps) return 'steps'
    if (steps % STEPS_PER_LOOK !== STEPS_PER_LOOK - 1) return undefined
    if (this.#transitions.stateCount > limits.maxStates) return 'memory'
    return limits.isTimeUp() ? 'time' : undefined
  }

  /** The operation to try now; none if all that are called before the first return were tried. */
  #candidate(): number | undefined {
    if (!this.#entries.isReturn(this.#node)) return this.#entries.operationAt[this.#node] as number
    for (; this.#openIndex < this.#placement.openEnded.length; this.#openIndex++, this.#choice = 0) {
      const operation = this.#placement.openEnded[this.#openIndex] as number
      if ((this.#entries.callOf[operation] as number) > this.#node) return undefined
      const twin = this.#twin[operation] as number
      if (!this.#placement.has(operation) && (twin < 0 || this.#placement.has(twin))) return operation
    }
    return undefined
  }

  #advance(): void {
    this.#choice = 0
    if (this.#entries.isReturn(this.#node)) this.#openIndex++
    else this.#node = this.#entries.next[this.#node] as number
  }

  /** Places an operation by its first possible outcome from the current choice on that leads to something not seen before. */
  #place(operation: number): 'placed' | 'impossible' | 'hopeless' | 'full' {
    const kind = this.#transitions.kinds[operation] as number
    const outcomes = this.#transitions.next(this.#state, kind)
    const changesNothing = outcomes.length === 1 && outcomes[0] === this.#state
    if (changesNothing && !this.#entries.isRequired(operation)) return 'impossible'
    const isForGood = changesNothing && this.#transitions.isReadOnly(kind)
    for (let i = this.#choice; i < outcomes.length; i++) {
      const next = outcomes[i] as number
      if (this.#isDetour(operation, kind, next)) continue
      this.#placement.flip(operation)
      const answer = this.#cache.add(this.#placement, next)
      if (answer === 'new') {
        this.#push(operation, isForGood ? FOR_GOOD : i, next)
        return 'placed'
      }
      this.#placement.flip(operation)
      if (answer === 'full') return 'full'
      if (isForGood) return 'hopeless'
    }
    return 'impossible'
  }

  /** Whether the placement on top only spent an operation: this one would lead to the same state without it. */
  #isDetour(operation: number, kind: number, next: number): boolean {
    if (this.#depth === 0 || this.#entries.isRequired(operation)) return false
    if (this.#entries.isRequired(this.#stack[this.#depth - 1] as number)) return false
    return this.#transitions.next(this.#stackStates[this.#depth - 1] as number, kind).includes(next)
  }

  #push(operation: number, choice: number, next: number): void {
    this.#stack[this.#depth] = operation
    this.#stackStates[this.#depth] = this.#state
    this.#stackChoices[this.#depth] = choice
    this.#depth++
    this.#state = next
    if (!this.#entries.isRequired(operation)) return
    this.#entries.lift(operation)
    this.#left--
  }

  /** Undoes placements up to the last one that may have an alternative, so that the search continues behind it; false if there is none. */
  #takeBack(): boolean {
    while (this.#depth > 0) {
      this.#depth--
      const operation = this.#stack[this.#depth] as number
      const choice = this.#stackChoices[this.#depth] as number
      const isRequired = this.#entries.isRequired(operation)
      this.#state = this.#stackStates[this.#depth] as number
      this.#placement.flip(operation)
      if (isRequired) {
        this.#entries.putBack(operation)
        this.#left++
      }
      if (choice === FOR_GOOD) continue
      this.#choice = choice + 1
      this.#node = isRequired ? (this.#entries.callOf[operation] as number) : this.#entries.firstReturn
      this.#openIndex = isRequired ? 0 : this.#placement.openIndexOf(operation)
      return true
    }
    return false
  }

  #noteBlockade(): void {
    if (this.#node < this.#blockedNode) return
    if (this.#node > this.#blockedNode) {
      this.#blockedNode = this.#node
      this.#blocked = this.#blockadeAt(this.#node)
    }
    const states = (this.#blocked as Blockade).states as number[]
    if (states.length < MAX_BLOCKED_STATES && !states.includes(this.#state)) states.push(this.#state)
  }

  #blockadeAt(node: number): Blockade {
    const operation = this.#entries.operationAt[node] as number
    const open: number[] = []
    for (let i = 0; i < this.#entries.operations.length; i++) {
      if ((this.#entries.callOf[i] as number) > node) break
      if (i !== operation && !this.#placement.has(i)) open.push(i)
    }
    const recent = [...this.#stack.subarray(Math.max(0, this.#depth - MAX_RECENT), this.#depth)]
    return { operation, states: [], recent, open }
  }
}

/** For each operation of unknown outcome the one of the same kind called before it, or -1. */
function twins(entries: EntryList, transitions: Transitions): Int32Array {
  const twin = new Int32Array(entries.operations.length).fill(-1)
  const last = new Int32Array(transitions.kindCount).fill(-1)
  for (const [i, kind] of transitions.kinds.entries()) {
    if (entries.isRequired(i)) continue
    twin[i] = last[kind] as number
    last[kind] = i
  }
  return twin
}
