import { type Model, type ModelName, modelNamed, type Operation } from '@leasehold/lab'
import fc from 'fast-check'

/** What an operation asks and answers, without its place in time. */
export type Content = Omit<Operation, 'invokedAt' | 'returnedAt' | 'outcome' | 'process'>

const small = fc.integer({ min: 0, max: 2 })
const owner = fc.constantFrom('a', 'b', 'c')
const key = fc.constantFrom('', '', '', '', '', '', 'x')
const token = fc.option(fc.bigInt({ min: 1n, max: 5n }), { nil: undefined })

const release = fc.record({ op: fc.constant('release'), key, owner, token })
const plainLock = fc.record({ op: fc.constantFrom('acquire', 'release'), key, owner })

/** Contents over domains so small that both verdicts are common. */
export const CONTENTS: Record<ModelName, fc.Arbitrary<Content>> = {
  register: fc.oneof(
    fc.record({ op: fc.constant('write'), key, value: small }),
    fc.record({ op: fc.constant('read'), key, result: fc.option(small) }),
    fc.record({ op: fc.constant('cas'), key, value: fc.tuple(small, small), result: fc.boolean() }),
  ),
  kv: fc.oneof(
    fc.record({ op: fc.constantFrom('put', 'append'), key, value: fc.constantFrom('p', 'q') }),
    fc.record({ op: fc.constant('get'), key, result: fc.constantFrom('', 'p', 'q', 'pq') }),
  ),
  'multi-register': fc
    .array(fc.tuple(fc.constantFrom('read', 'write'), fc.constantFrom('x', 'y'), small), { minLength: 1, maxLength: 2 })
    .map((steps) => ({ op: 'txn', key: '', value: steps })),
  mutex: plainLock,
  'reentrant-mutex': plainLock,
  'fenced-mutex': fc.oneof(
    fc.record({ op: fc.constant('acquire'), key, owner, token: fc.bigInt({ min: 1n, max: 5n }) }),
    release,
  ),
  rw: fc.oneof(
    fc.record({ op: fc.constant('acquire'), key, owner, token, mode: fc.constantFrom('shared', 'exclusive') }),
    release,
  ),
  permits: fc.oneof(
    fc.record({
      op: fc.constant('acquire'),
      key,
      owner,
      token,
      slot: fc.option(small, { nil: undefined }),
      permits: fc.constant(2),
    }),
    fc.record({ op: fc.constant('release'), key, owner, slot: fc.option(small, { nil: undefined }) }),
  ),
}

export const MODEL_NAMES = Object.keys(CONTENTS) as ModelName[]

/** Operations at any time with any answer: linearizable or not. */
export function arbitraryHistory(name: ModelName, maxLength: number): fc.Arbitrary<Operation[]> {
  const placed = fc.record({
    content: CONTENTS[name],
    invokedAt: fc.integer({ min: 0, max: 12 }),
    length: fc.integer({ min: 0, max: 5 }),
    outcome: fc.constantFrom('ok', 'ok', 'ok', 'ok', 'unknown', 'fail'),
  })
  return fc.array(placed, { maxLength }).map((all) =>
    all.map(({ content, invokedAt, length, outcome }, i): Operation => {
      const returnedAt = outcome === 'ok' ? invokedAt + length : undefined
      return { ...withOutcome(content, outcome), process: `p${i}`, outcome, invokedAt, returnedAt }
    }),
  )
}

/**
 * A history that is linearizable by construction: possible steps of the model, one per unit of time, each stretched
 * around its unit; some lose their answer, and some operations that never happened are added with an unknown outcome.
 */
export function linearizableHistory(name: ModelName, maxLength: number, maxStretch = 40): fc.Arbitrary<Operation[]> {
  const stretch = fc.integer({ min: 0, max: maxStretch })
  const drawn = fc.record({
    contents: fc.array(CONTENTS[name], { minLength: 3, maxLength: 3 }),
    before: stretch,
    after: stretch,
    fate: fc.constantFrom('ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'lost', 'never'),
  })
  return fc.array(drawn, { maxLength }).map((all) => {
    const model: Model = modelNamed(name)
    const states = new Map<string, unknown>()
    const history: Operation[] = []
    const start = startOf(
      model,
      all.flatMap(({ contents }) => contents),
    )
    for (const [i, { contents, before, after, fate }] of all.entries()) {
      const [invokedAt, returnedAt] = [i * 10 - before, i * 10 + after]
      for (const content of contents) {
        const operation: Operation = { ...content, process: `p${i}`, outcome: 'ok', invokedAt, returnedAt }
        const place = model.partition(operation)
        const next = model.step(states.get(place) ?? start, operation)[0]
        if (next === undefined && fate !== 'never') continue
        if (fate !== 'never') states.set(place, next)
        const lost: Operation = { ...withOutcome(content, 'unknown'), process: `p${i}`, outcome: 'unknown', invokedAt }
        history.push(fate === 'ok' ? operation : lost)
        break
      }
    }
    return history
  })
}

/** A linearizable history in which one operation asks or answers something else. */
export function nearlyLinearizableHistory(name: ModelName, maxLength: number): fc.Arbitrary<Operation[]> {
  return fc
    .tuple(linearizableHistory(name, maxLength, 20), fc.nat(), fc.option(CONTENTS[name]))
    .map(([history, at, content]) =>
      history.map((operation, i) =>
        content !== null && i === at % history.length
          ? { ...operation, ...withOutcome({ ...content, key: operation.key }, operation.outcome) }
          : operation,
      ),
    )
}

/** A start that knows that tokens and slots are told, if any operation drawn tells them. */
function startOf(model: Model, contents: readonly Content[]): unknown {
  return model.init(
    contents.map((content, i) => ({ ...content, process: `p${i}`, outcome: 'ok', invokedAt: 0, returnedAt: 1 })),
  )
}

/** An answer that was lost tells nothing. */
function withOutcome(content: Content, outcome: string): Content {
  if (outcome !== 'unknown') return content
  const told = content.op === 'acquire' ? { token: undefined, slot: undefined } : {}
  return { ...content, ...told, result: content.op === 'cas' ? undefined : content.result }
}
