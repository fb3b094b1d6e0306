import type { Model, ModelOptions } from '../model.js'
import { type Operation, ownerOf } from '../operation.js'
import { describeLock, LOCK_OPERATIONS, withoutUnprovenGrants } from './mutex.js'
import { grantAfter, grantText, type NewestGrant, NO_GRANT, tellsTokens, tokenTold } from './token-rules.js'

interface Permit {
  readonly owner: string
  /** Undefined in a history that tells no slots. */
  readonly slot: number | undefined
  /** Undefined in a history that tells no tokens. */
  readonly grant: NewestGrant | undefined
}

interface PermitsState {
  readonly size: number
  readonly slotted: boolean
  readonly newest: NewestGrant | undefined
  /** In order of their texts. */
  readonly held: readonly Permit[]
}

/**
 * A semaphore: at most `permits` holds, each with a slot of its own below that number, and tokens that grow with every
 * grant. Slots and tokens are judged if the history tells them. An acquire of unknown outcome may have any free slot.
 */
export function permitsModel(options: ModelOptions = {}): Model<PermitsState> {
  return {
    name: 'permits',
    operations: LOCK_OPERATIONS,
    partition: (operation) => operation.key,
    init: (operations) => ({
      size: options.permits ?? operations.find((operation) => operation.permits !== undefined)?.permits ?? 0,
      slotted: operations.some((operation) => operation.op === 'acquire' && operation.slot !== undefined),
      newest: tellsTokens(operations) ? NO_GRANT : undefined,
      held: [],
    }),
    step: (state, operation) => (operation.op === 'acquire' ? acquire(state, operation) : release(state, operation)),
    stateText: ({ size, held, newest }) => {
      const token = newest === undefined ? '' : `, ${grantText(newest)}`
      return `${held.length} of ${size} held${held.map((permit) => ` (${permitText(permit)})`).join('')}${token}`
    },
    describe: describeLock,
    isReadOnly: () => false,
    relevant: (operations) => withoutUnprovenGrants(operations),
    problem: (operation) =>
      operation.op === 'acquire' && operation.permits === undefined && options.permits === undefined
        ? 'an acquire of a permit needs the number of permits, in the event or by --permits'
        : undefined,
  }
}

function acquire(state: PermitsState, operation: Operation): readonly PermitsState[] {
  const size = operation.permits ?? state.size
  if (state.held.length >= size) return []
  if (state.held.length > 0 && size !== state.size) return []
  const newest = state.newest === undefined ? undefined : grantAfter(state.newest, operation.token)
  if (state.newest !== undefined && newest === undefined) return []
  const owner = ownerOf(operation)
  return slotsFor(state, operation, size).map((slot) => ({
    ...state,
    size,
    newest,
    held: inOrder([...state.held, { owner, slot, grant: newest }]),
  }))
}

/** The slots that this acquire may have been given. */
function slotsFor(state: PermitsState, operation: Operation, size: number): readonly (number | undefined)[] {
  if (!state.slotted) return [undefined]
  const taken = new Set(state.held.map((permit) => permit.slot))
  const free = Array.from({ length: size }, (_, slot) => slot).filter((slot) => !taken.has(slot))
  return operation.slot === undefined ? free : free.filter((slot) => slot === operation.slot)
}

/** Any of the owner's permits that fits what the release names. */
function release(state: PermitsState, operation: Operation): readonly PermitsState[] {
  const owner = ownerOf(operation)
  const after = new Map<string, PermitsState>()
  for (const [at, permit] of state.held.entries()) {
    if (permit.owner !== owner || !slotFits(permit, operation)) continue
    const grant = permit.grant === undefined ? undefined : tokenTold(permit.grant, operation.token)
    if (permit.grant !== undefined && grant === undefined) continue
    after.set(permitText(permit), { ...state, newest: newerOf(state.newest, grant), held: state.held.toSpliced(at, 1) })
  }
  return [...after.values()]
}

/** A token that was told late is still one that later grants must exceed. */
function newerOf(newest: NewestGrant | undefined, told: NewestGrant | undefined): NewestGrant | undefined {
  return newest !== undefined && told !== undefined && told.floor > newest.floor ? told : newest
}

function slotFits(permit: Permit, operation: Operation): boolean {
  return operation.slot === undefined || permit.slot === undefined || permit.slot === operation.slot
}

function inOrder(held: readonly Permit[]): readonly Permit[] {
  return held.toSorted((a, b) => (permitText(a) < permitText(b) ? -1 : 1))
}

function permitText({ owner, slot, grant }: Permit): string {
  const place = slot === undefined ? '' : ` slot ${slot}`
  return `${owner}${place}${grant === undefined ? '' : ` ${grantText(grant)}`}`
}
