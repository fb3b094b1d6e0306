import { type Model, type ModelName, modelNamed, type Operation } from '@leasehold/lab'
import fc from 'fast-check'

/** What an operation asks and answers, without its place in time. */
export type Content = Omit<Operation, 'invokedAt' | 'returnedAt' | 'outcome' | 'process'>

const small = fc.integer({ min: 0, max: 2 })
const owner = fc.constantFrom('a', 'b', 'c')
const key = fc.constantFrom('', '', 'x')
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
export function linearizableHistory(name: ModelName, maxLength: number): fc.Arbitrary<Operation[]> {
  const stretch = fc.integer({ min: 0, max: 40 })
  const drawn = fc.record({
    content: CONTENTS[name],
    before: stretch,
    after: stretch,
    fate: fc.constantFrom('ok', 'ok', 'ok', 'ok', 'ok', 'lost', 'ok', 'never'),
  })
  return fc.array(drawn, { maxLength }).map((all) => {
    const model: Model = modelNamed(name)
    const states = new Map<string, unknown>()
    const history: Operation[] = []
    for (const [i, { content, before, after, fate }] of all.entries()) {
      const at = i * 10
      const operation: Operation = {
        ...content,
        process: `p${i}`,
        outcome: 'ok',
        invokedAt: at - before,
        returnedAt: at + after,
      }
      const lost: Operation = {
        ...withOutcome(content, 'unknown'),
        process: `p${i}`,
        outcome: 'unknown',
        invokedAt: at - before,
      }
      if (fate === 'never') {
        history.push(lost)
        continue
      }
      const place = model.partition(operation)
      const state =
        states.get(place) ??
        startOf(
          model,
          all.map((one) => one.content),
        )
      const next = model.step(state, operation)[0]
      if (next === undefined) continue
      states.set(place, next)
      history.push(fate === 'lost' ? lost : operation)
    }
    return history
  })
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
