import { ConfigurationCache } from './cache.js'
import { explain, type Explanation } from './explain.js'
import { HistoryError } from './history-error.js'
import { ExactKeys, HashedKeys, type KeyStore } from './key-store.js'
import type { Model } from './model.js'
import type { Operation } from './operation.js'
import { Placement } from './placement.js'
import { Search, type SearchLimits, type SearchResult } from './search.js'
import { EntryList } from './entry-list.js'
import { Transitions } from './transitions.js'

export const DEFAULT_BUDGET_MS = 1_500
/** About 40 bytes each in the hashed memory, at its lowest fill; sets of operations with unknown outcome come on top. */
export const DEFAULT_MAX_CONFIGURATIONS = 8_000_000

/** All partitions get this share of their budget before any gets the rest: an easy violation is found first. */
const FIRST_SHARE = 1 / 8
/** The exact repetition of an illegal verdict is slower than the search that found it. */
const CONFIRM_SHARE = 4
const EXACT_BYTES_PER_CONFIGURATION = 64

export interface CheckOptions {
  /** A monotonic clock in milliseconds for the budget. Without it only `maxSteps` bounds the search. */
  readonly now?: (() => number) | undefined
  /** Time for each partition, default 1500; the confirmation of an illegal verdict may take four times as long. */
  readonly budgetMs?: number | undefined
  /** Bound on placements tried for each partition: the same on every machine. Default: none. */
  readonly maxSteps?: number | undefined
  /** Bound on configurations remembered for each partition; default 8 million. */
  readonly maxConfigurations?: number | undefined
}

/** `unknown` is never a pass: a limit was reached before an answer. */
export type Verdict = 'linearizable' | 'not-linearizable' | 'unknown'

export interface CheckResult {
  readonly verdict: Verdict
  /** Operations judged, without those that failed. */
  readonly operations: number
  readonly partitions: number
  /** Partitions without an answer. */
  readonly undecided: readonly UndecidedPartition[]
  /** Placements tried, over all partitions. */
  readonly steps: number
  /** For `not-linearizable`: the partition and the point where every order gets stuck. */
  readonly explanation?: Explanation
}

export interface UndecidedPartition {
  readonly key: string
  readonly operations: number
  readonly reason: 'time' | 'steps' | 'memory'
}

interface Partition {
  readonly key: string
  readonly entries: EntryList
  readonly transitions: Transitions
}

/**
 * Decides whether the operations of a history can be put in one order that the model allows and that respects
 * real time: an operation that returned before another was called comes first. Each object of the model is judged alone,
 * which is enough (Herlihy and Wing 1990, locality). Ends at the first object that is not linearizable.
 *
 * @throws HistoryError if the model does not know an operation
 * @example
 * const result = checkHistory(mutexModel(), recorder.operations(), { budgetMs: 1_500, now: () => performance.now() })
 * if (result.verdict !== 'linearizable') throw new Error(result.explanation?.text ?? 'undecided')
 */
export function checkHistory(model: Model, history: readonly Operation[], options: CheckOptions = {}): CheckResult {
  const operations = prepare(model, history)
  const partitions = partition(model, operations)
  const summary = { operations: operations.length, partitions: partitions.length }
  let undecided: UndecidedPartition[] = []
  let pending = partitions
  let steps = 0
  for (const share of [FIRST_SHARE, 1]) {
    const results = pending.map((one) => ({ one, result: undefined as SearchResult | undefined }))
    for (const entry of results) {
      entry.result = judge(entry.one, options, share)
      steps += entry.result.steps
      if (entry.result.verdict === 'not-linearizable') {
        const explanation = explain(model, entry.one, entry.result.blockade)
        return { verdict: 'not-linearizable', ...summary, undecided, steps, explanation }
      }
    }
    pending = []
    undecided = []
    for (const { one, result } of results) {
      if (result?.verdict !== 'unknown') continue
      pending.push(one)
      undecided.push({ key: one.key, operations: one.entries.operations.length, reason: result.reason })
    }
  }
  return { verdict: undecided.length === 0 ? 'linearizable' : 'unknown', ...summary, undecided, steps }
}

/** One search with a hashed cache; an illegal verdict is only given after an exact one agrees. */
function judge(partition: Partition, options: CheckOptions, share: number): SearchResult {
  const maxConfigurations = options.maxConfigurations ?? DEFAULT_MAX_CONFIGURATIONS
  const found = search(partition, () => new HashedKeys(maxConfigurations), options, share)
  if (found.verdict !== 'not-linearizable') return found
  const exactKeys = (words: number) => new ExactKeys(words, maxConfigurations * EXACT_BYTES_PER_CONFIGURATION)
  const confirmed = search(partition, exactKeys, options, share * CONFIRM_SHARE)
  return { ...confirmed, steps: found.steps + confirmed.steps }
}

function search(
  { entries: { operations }, transitions }: Partition,
  keysFor: (words: number) => KeyStore,
  options: CheckOptions,
  share: number,
): SearchResult {
  const { now } = options
  const maxConfigurations = options.maxConfigurations ?? DEFAULT_MAX_CONFIGURATIONS
  const budgetMs = (options.budgetMs ?? DEFAULT_BUDGET_MS) * share
  const start = now?.() ?? 0
  const limits: SearchLimits = {
    maxSteps: Math.ceil((options.maxSteps ?? Number.MAX_SAFE_INTEGER) * share),
    maxStates: maxConfigurations,
    isTimeUp: () => now !== undefined && now() - start >= budgetMs,
  }
  // A search leaves its entries as far as it got: each starts from a fresh one.
  const entries = new EntryList(operations)
  const placement = new Placement(entries)
  const keys = keysFor(placement.required.length)
  const cache = new ConfigurationCache(keys, placement.optional.length, maxConfigurations)
  return new Search(entries, transitions, placement, cache).run(limits)
}

/** Leaves out what did not happen or cannot matter, gives operations the model's names and refuses what it cannot judge. */
function prepare(model: Model, history: readonly Operation[]): Operation[] {
  const operations: Operation[] = []
  for (const operation of history) {
    const op = Object.hasOwn(model.operations, operation.op) ? model.operations[operation.op] : undefined
    if (op === undefined) {
      const known = [...new Set(Object.values(model.operations))].join(', ')
      throw new HistoryError(`model ${model.name} has no operation ${operation.op} (it has ${known})`, operation.line)
    }
    if (operation.outcome === 'fail') continue
    const named = op === operation.op ? operation : { ...operation, op }
    const problem = model.problem(named) ?? timeProblem(named)
    if (problem !== undefined) throw new HistoryError(problem, operation.line)
    operations.push(named)
  }
  return operations
}

function timeProblem({ invokedAt, returnedAt, outcome }: Operation): string | undefined {
  if (!Number.isFinite(invokedAt)) return `an operation needs a finite time of invocation, not ${invokedAt}`
  if (outcome !== 'ok') return undefined
  if (returnedAt === undefined || !Number.isFinite(returnedAt)) {
    return `an acknowledged operation needs a finite time of return, not ${returnedAt}`
  }
  return returnedAt < invokedAt ? `an operation returned at ${returnedAt}, before its call at ${invokedAt}` : undefined
}

/** The objects of a history in order of their first operation. */
function partition(model: Model, operations: readonly Operation[]): Partition[] {
  const groups = new Map<string, Operation[]>()
  for (const operation of operations) {
    const key = model.partition(operation)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [operation])
    else group.push(operation)
  }
  return [...groups].map(([key, group]) => {
    const entries = new EntryList(model.relevant?.(group) ?? group)
    return { key, entries, transitions: new Transitions(model, entries.operations) }
  })
}
