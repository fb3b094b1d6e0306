import { InvalidError } from '@leasehold/core'
import type { Attributes, DynamoClient } from './dynamodb/client.js'
import { type DynamoChange, DynamoItem, type DynamoOptions } from './dynamodb/item.js'
import { bodyOf, type Fenced, type Guard, type OpenOptions } from './common/guard.js'
import { type GuardableHold, tracked } from './common/hold.js'
import { checkResource } from './common/resource.js'
import { checkWrites, singleTarget } from './common/single-target.js'

export type { Attributes, AttributeValue, DynamoClient } from './dynamodb/client.js'
export type { DynamoChange, DynamoOptions } from './dynamodb/item.js'

/** An item under a lock, opened. One change at a time. */
export interface DynamoTx {
  /** The item as this unit has read or changed it last, without the guard's attributes; null when there is none. */
  readonly item: Attributes | null
  /** UpdateItem. A failed `ConditionExpression` of yours rejects with the SDK's own error. */
  update(change: DynamoChange): Promise<Attributes>
  /** PutItem: replaces all attributes. The key may be left out. */
  put(item: Attributes): Promise<void>
  /** Deletes the attributes. Key and mark stay. */
  delete(): Promise<void>
  /**
   * TransactWriteItems: changes of other items, together with a check of this one's mark. At most 99.
   * A failed condition of yours rejects with the SDK's own error.
   */
  transact(items: readonly object[]): Promise<void>
}

export interface DynamoGuard extends Guard<DynamoTx> {
  /** Raises the mark: later changes of earlier holds are refused. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /** Opens, and reads; null when there is no item. */
  read(hold: GuardableHold, options?: OpenOptions): Promise<Attributes | null>
  /** Opens, and changes the item. */
  update(hold: GuardableHold, change: DynamoChange, options?: OpenOptions): Promise<Attributes>
  /** For readers without a lock: the item as it is now (a consistent read). */
  latest(resource: string): Promise<Attributes | null>
}

/**
 * A guard on items of DynamoDB. Mark and data are attributes of one item; each change carries a condition that DynamoDB
 * checks in the same step, comparing tokens as numbers with all their digits (it keeps 38).
 *
 * @example
 * const guard = fence(new DynamoDB({}), { table: 'invoices', key: (resource) => ({ id: { S: resource } }) })
 * await guard.with(hold, async (invoice) => {
 *   const total = Number(invoice.item?.total?.N ?? 0) + 7
 *   await invoice.update({ UpdateExpression: 'SET total = :n', ExpressionAttributeValues: { ':n': { N: String(total) } } })
 * })
 */
export function fence(dynamo: DynamoClient, options: DynamoOptions): DynamoGuard {
  if (typeof dynamo?.updateItem !== 'function' || typeof dynamo.putItem !== 'function') {
    throw new InvalidError('a guard for DynamoDB takes a DynamoDB of @aws-sdk/client-dynamodb', {
      hint: 'new DynamoDB(…), not new DynamoDBClient(…)',
    })
  }
  if (typeof options?.table !== 'string' || typeof options.key !== 'function') {
    throw new InvalidError('a guard for DynamoDB needs the name of the table, and key(resource)')
  }
  const opened = <T>(
    hold: GuardableHold,
    open: OpenOptions | undefined,
    then: (item: DynamoItem) => T | Promise<T>,
    writes = false,
  ): Promise<T> =>
    tracked(hold, async () => {
      const target = singleTarget(hold, options, open, 'item')
      if (writes) checkWrites(target)
      const item = new DynamoItem(dynamo, options, target, () => hold.assertHeld())
      await item.open()
      return await then(item)
    })
  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<DynamoTx>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<DynamoTx>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return opened(hold, open, async (item) => await body(item as unknown as Fenced<DynamoTx>))
    },
    open: (hold, open) => opened(hold, open, () => {}),
    read: (hold, open) => opened(hold, open, (item) => item.item),
    update: (hold, change, open) => opened(hold, open, (item) => item.update(change), true),
    latest: (resource) => DynamoItem.latest(dynamo, options, checkResource(resource)),
  }
}
