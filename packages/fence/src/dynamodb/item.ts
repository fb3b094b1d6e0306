import { InvalidError, parseToken } from '@leasehold/core'
import { checkedAttempts, pauseAfter } from '../common/attempts.js'
import { unavailable, unknownOutcome } from '../common/errors.js'
import { type CasPlatform, platform } from '../common/platform.js'
import type { GuardOptions } from '../common/guard.js'
import { describe } from '../common/hold.js'
import { mismatch, staleToken, type Target } from '../common/resource.js'
import { checkWrites } from '../common/single-target.js'
import type { Attributes, DynamoClient } from './client.js'
import { failureOf, wasRetried } from './errors.js'

export interface DynamoOptions extends GuardOptions {
  readonly table: string
  /** The primary key of a resource's item: `(resource) => ({ id: { S: resource } })`. */
  readonly key: (resource: string) => Attributes
  /** How often a change is attempted when others are faster, the table is throttled, or answers are lost. Default 10. */
  readonly attempts?: number
  /** What the guard uses of the machine; for tests and simulations. */
  readonly platform?: Partial<CasPlatform>
}

/** The parts of an UpdateItem that the caller provides. */
export interface DynamoChange {
  readonly UpdateExpression: string
  readonly ConditionExpression?: string
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>
  readonly ExpressionAttributeValues?: Attributes
}

const TRANSACT_ITEMS_MAX = 99
const NOT_AVAILABLE = 'DynamoDB is not available'

/** The guard's attributes, in the item that they protect. */
const TOKEN = 'leasehold_token'
const LOCK = 'leasehold_lock'
const KIND = 'leasehold_kind'
const WRITE = 'leasehold_write'
const NAMES = { '#lh_t': TOKEN, '#lh_l': LOCK, '#lh_k': KIND, '#lh_w': WRITE }
const MINE =
  '(attribute_not_exists(#lh_t) OR #lh_t <= :lh_t) AND (attribute_not_exists(#lh_k) OR (#lh_k = :lh_k AND #lh_l = :lh_l))'
const RAISE = '#lh_t = :lh_t, #lh_k = :lh_k, #lh_l = :lh_l'
/** A write is conditional on the write that this unit has seen, so a delayed retry of an earlier write is rejected. */
const AS_SEEN = { new: 'attribute_not_exists(#lh_w)', old: '#lh_w = :lh_before' }

/** One item during one unit of work of a hold. */
export class DynamoItem {
  readonly #dynamo: DynamoClient
  readonly #options: DynamoOptions
  readonly #target: Target
  readonly #attempts: number
  readonly #platform: CasPlatform
  readonly #check: () => void
  #seen: Attributes = {}

  constructor(dynamo: DynamoClient, options: DynamoOptions, target: Target, check: () => void) {
    this.#dynamo = dynamo
    this.#options = options
    this.#target = target
    this.#attempts = checkedAttempts(options.attempts)
    this.#platform = { ...platform, ...options.platform }
    this.#check = check
  }

  static async latest(dynamo: DynamoClient, options: DynamoOptions, resource: string): Promise<Attributes | null> {
    const Key = options.key(resource)
    try {
      const { Item } = await dynamo.getItem({ TableName: options.table, Key: Key as never, ConsistentRead: true })
      return withoutGuard((Item ?? {}) as Attributes, Key)
    } catch (error) {
      const failure = failureOf(error)
      throw failure.kind === 'definite' ? failure.error : unavailable(NOT_AVAILABLE, error)
    }
  }

  get item(): Attributes | null {
    return withoutGuard(this.#seen, this.#options.key(this.#target.mark))
  }

  async open(): Promise<void> {
    const { kind, resource, mark, lock } = this.#target
    if (kind === 'slot') await this.#keepKind(resource, lock)
    const input = {
      ...this.#common(MINE),
      Key: this.#options.key(mark),
      UpdateExpression: `SET ${RAISE}`,
      ReturnValues: 'ALL_NEW',
    }
    await this.#try(undefined, async () => {
      const { Attributes } = await this.#dynamo.updateItem(input as never)
      this.#seen = (Attributes ?? {}) as Attributes
    })
  }

  async update(change: DynamoChange): Promise<Attributes> {
    const { UpdateExpression, ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues } = change
    checkUnreserved({ ...ExpressionAttributeNames, ...ExpressionAttributeValues })
    if (/leasehold_/.test(`${UpdateExpression} ${ConditionExpression ?? ''}`)) {
      throw new InvalidError('attributes that begin with leasehold_ belong to the guard')
    }
    const { input, write } = this.#write(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
    const update = {
      ...input,
      Key: this.#options.key(this.#target.mark),
      UpdateExpression: withSet(UpdateExpression, `${RAISE}, #lh_w = :lh_w`),
      ReturnValues: 'ALL_NEW',
    }
    await this.#try(write, async () => {
      const { Attributes } = await this.#dynamo.updateItem(update as never)
      this.#seen = (Attributes ?? {}) as Attributes
    })
    return this.item ?? {}
  }

  async put(item: Attributes): Promise<void> {
    for (const name of Object.values(NAMES)) {
      if (name in item) throw new InvalidError(`the attribute ${name} belongs to the guard`)
    }
    const { input, write } = this.#write()
    const { mark, token, kind, lock } = this.#target
    const guard = { [TOKEN]: { N: token.toString() }, [KIND]: { S: kind }, [LOCK]: { S: lock }, [WRITE]: { S: write } }
    const Item: Attributes = { ...item, ...this.#options.key(mark), ...guard }
    await this.#try(write, async () => {
      await this.#dynamo.putItem({ ...input, ExpressionAttributeValues: used(input), Item } as never)
      this.#seen = Item
    })
  }

  async delete(): Promise<void> {
    await this.put({})
  }

  async transact(items: readonly object[]): Promise<void> {
    if (items.length === 0 || items.length > TRANSACT_ITEMS_MAX) {
      throw new InvalidError(`a guarded transaction has 1 to ${TRANSACT_ITEMS_MAX} items, not ${items.length}`)
    }
    const { input, write } = this.#write()
    const Update = {
      ...input,
      Key: this.#options.key(this.#target.mark),
      UpdateExpression: `SET ${RAISE}, #lh_w = :lh_w`,
    }
    await this.#try(write, async () => {
      const TransactItems = [{ Update }, ...items]
      await this.#dynamo.transactWriteItems({ TransactItems, ClientRequestToken: write } as never)
      this.#seen = { ...this.#seen, [WRITE]: { S: write } }
    })
  }

  /** For permits, an item of the bare resource stores the kind. */
  async #keepKind(resource: string, lock: string): Promise<void> {
    const input = {
      TableName: this.#options.table,
      Key: this.#options.key(resource),
      UpdateExpression: 'SET #lh_k = :lh_k, #lh_l = :lh_l',
      ConditionExpression: 'attribute_not_exists(#lh_k) OR (#lh_k = :lh_k AND #lh_l = :lh_l)',
      ExpressionAttributeNames: { '#lh_k': KIND, '#lh_l': LOCK },
      ExpressionAttributeValues: { ':lh_k': { S: 'permits' }, ':lh_l': { S: lock } },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }
    await this.#try(undefined, async () => void (await this.#dynamo.updateItem(input as never)), 'permits')
  }

  #common(condition: string) {
    const { token, kind, lock } = this.#target
    return {
      TableName: this.#options.table,
      ConditionExpression: condition,
      ExpressionAttributeNames: without(NAMES, condition.includes('#lh_w') ? [] : ['#lh_w']),
      ExpressionAttributeValues: {
        ':lh_t': { N: token.toString() },
        ':lh_k': { S: kind },
        ':lh_l': { S: lock },
      } as Record<string, Attributes[string]>,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }
  }

  #write(condition?: string, names: Readonly<Record<string, string>> = {}, values: Attributes = {}) {
    checkWrites(this.#target)
    const write = this.#platform.newId()
    const before = this.#seen[WRITE]
    const common = this.#common(`${MINE} AND ${before === undefined ? AS_SEEN.new : AS_SEEN.old}`)
    const ExpressionAttributeValues = {
      ...common.ExpressionAttributeValues,
      ...values,
      ':lh_w': { S: write },
      ...(before === undefined ? {} : { ':lh_before': before }),
    }
    const input = {
      ...common,
      ConditionExpression: `${common.ConditionExpression}${condition === undefined ? '' : ` AND (${condition})`}`,
      ExpressionAttributeNames: { ...common.ExpressionAttributeNames, ...names },
      ExpressionAttributeValues,
    }
    return { input, write }
  }

  /**
   * Sends a change, with retries. A retry of a write that has taken effect fails its condition on `before`, and is recognized
   * by its id.
   */
  async #try(write: string | undefined, send: () => Promise<void>, kind?: string): Promise<void> {
    let unknown: { readonly error: unknown } | undefined
    let last: unknown
    for (let n = 1; n <= this.#attempts; n++) {
      this.#checkHeld(unknown)
      try {
        await send()
        return
      } catch (error) {
        last = error
        if (write !== undefined && wasRetried(error)) unknown ??= { error }
        const failure = failureOf(error)
        if (failure.kind === 'definite') throw unknown === undefined ? failure.error : unknownOutcome(unknown.error)
        if (failure.kind === 'condition') {
          if (!this.#isMine(failure.item, write)) throw this.#rejection(failure.item, error, unknown, kind)
          this.#seen = failure.item as Attributes
          return
        }
        if (failure.kind === 'unknown' && write !== undefined) unknown = { error }
      }
      if (n < this.#attempts) await pauseAfter(n, this.#platform)
    }
    throw unknown === undefined ? unavailable(NOT_AVAILABLE, last) : unknownOutcome(unknown.error)
  }

  #checkHeld(unknown: { readonly error: unknown } | undefined): void {
    try {
      this.#check()
    } catch (error) {
      throw unknown === undefined ? error : unknownOutcome(error)
    }
  }

  #isMine(item: Attributes | undefined, write: string | undefined): boolean {
    return write !== undefined && item?.[WRITE]?.S === write
  }

  #rejection(
    item: Attributes | undefined,
    error: unknown,
    unknown: { readonly error: unknown } | undefined,
    kind: string = this.#target.kind,
  ): unknown {
    const { mark, token } = this.#target
    const stored = { kind: item?.[KIND]?.S, lock: item?.[LOCK]?.S }
    if (stored.kind !== undefined && stored.lock !== undefined) {
      const problem = mismatch(this.#target, { kind: stored.kind, lock: stored.lock }, kind)
      if (problem !== undefined) return problem
    }
    if (unknown !== undefined) return unknownOutcome(unknown.error)
    const stale = item?.[TOKEN]?.N === undefined ? 0n : parseToken(item[TOKEN].N)
    if (stale > token) return staleToken(mark, token, stale)
    if (item?.[WRITE]?.S !== this.#seen[WRITE]?.S) {
      return new InvalidError('this hold changes the item twice concurrently', {
        cause: error,
        hint: 'wait for the first change',
      })
    }
    return error
  }
}

/** Drops values that no expression uses, which DynamoDB rejects: a put raises the mark by its item, not by an expression. */
function used(input: { ConditionExpression: string; ExpressionAttributeValues: Attributes }): Attributes {
  const all = Object.entries(input.ExpressionAttributeValues)
  return Object.fromEntries(all.filter(([name]) => new RegExp(`${name}\\b`).test(input.ConditionExpression)))
}

function without<T extends Record<string, string>>(names: T, left: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(names).filter(([name]) => !left.includes(name)))
}

/** Adds assignments to the SET clause of an update expression, of which there is at most one. */
function withSet(expression: string, assignments: string): string {
  if (typeof expression !== 'string') throw new InvalidError(`an UpdateExpression is text, not ${describe(expression)}`)
  const set = /(?<![#:\w.])SET\s+/i.exec(expression)
  if (set === null) return `SET ${assignments} ${expression}`
  const end = set.index + set[0].length
  return `${expression.slice(0, end)}${assignments}, ${expression.slice(end)}`
}

function checkUnreserved(names: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(names)) {
    if (/^[#:]lh_/.test(name)) throw new InvalidError(`names that begin with ${name.slice(0, 4)} belong to the guard`)
    if (typeof value === 'string' && (Object.values(NAMES) as string[]).includes(value)) {
      throw new InvalidError(`the attribute ${value} belongs to the guard`)
    }
  }
}

/** The item without the guard's attributes; null if only its key is left. */
function withoutGuard(item: Attributes, key: Attributes): Attributes | null {
  const { [TOKEN]: _token, [LOCK]: _lock, [KIND]: _kind, [WRITE]: _write, ...rest } = item
  return Object.keys(rest).some((name) => !(name in key)) ? rest : null
}
