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

function mustPrecede(first: Operation, second: Operation): boolean {
  return first.outcome === 'ok' && first.returnedAt !== undefined && first.returnedAt < second.invokedAt
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}
