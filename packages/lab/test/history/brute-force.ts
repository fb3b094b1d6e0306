import type { Model, Operation } from '@leasehold/lab'

/**
 * Tries every order of at most a handful of operations: the definition of linearizability and nothing else.
 * `isRequired` says which operations must be placed; the others may be.
 */
export function bruteForce(
  model: Model,
  operations: readonly Operation[],
  isRequired: (operation: Operation) => boolean = (operation) => operation.outcome === 'ok',
): boolean {
  const happened = operations.filter((operation) => operation.outcome !== 'fail')
  const byPartition = groupBy(happened, (operation) => model.partition(operation))
  return [...byPartition.values()].every((group) => placeAll(model, group, model.init(group), isRequired))
}

function placeAll(
  model: Model,
  left: readonly Operation[],
  state: unknown,
  isRequired: (operation: Operation) => boolean,
): boolean {
  if (!left.some(isRequired)) return true
  return left.some((operation) => {
    const others = left.filter((other) => other !== operation)
    if (others.some((other) => isRequired(other) && mustPrecede(other, operation))) return false
    return model.step(state, operation).some((next) => placeAll(model, others, next, isRequired))
  })
}

interface Configuration {
  readonly placed: ReadonlySet<Operation>
  readonly state: unknown
}

/**
 * Goes through the history once and keeps every configuration that is possible at each moment: another way to the same
 * verdict, for histories too long for {@link bruteForce}.
 */
export function followAll(model: Model, operations: readonly Operation[]): boolean {
  const happened = operations.filter((operation) => operation.outcome !== 'fail')
  const byPartition = groupBy(happened, (operation) => model.partition(operation))
  return [...byPartition.values()].every((group) => {
    let possible: Configuration[] = [{ placed: new Set(), state: model.init(group) }]
    const required = group.filter(({ outcome }) => outcome === 'ok')
    for (const ending of required.toSorted((a, b) => (a.returnedAt as number) - (b.returnedAt as number))) {
      const called = group.filter((operation) => operation.invokedAt <= (ending.returnedAt as number))
      possible = closure(model, called, possible).filter(({ placed }) => placed.has(ending))
    }
    return possible.length > 0
  })
}

/** Everything that placing called operations in any order leads to. */
function closure(model: Model, called: readonly Operation[], start: readonly Configuration[]): Configuration[] {
  const textOf = ({ placed, state }: Configuration) =>
    `${called.map((operation) => (placed.has(operation) ? '1' : '0')).join('')} ${model.stateText(state)}`
  const all = new Map(start.map((one) => [textOf(one), one]))
  // Entries that are added on the way are visited too.
  for (const { placed, state } of all.values()) {
    for (const operation of called) {
      if (placed.has(operation)) continue
      for (const next of model.step(state, operation)) {
        const reached = { placed: new Set([...placed, operation]), state: next }
        all.set(textOf(reached), all.get(textOf(reached)) ?? reached)
      }
    }
  }
  return [...all.values()]
}

function mustPrecede(first: Operation, second: Operation): boolean {
  return first.outcome === 'ok' && first.returnedAt !== undefined && first.returnedAt < second.invokedAt
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}
