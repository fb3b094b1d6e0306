import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Expressions, type Item, ValidationError } from './dynamodb-expressions.js'

/** What happens to the next write. */
export type DynamoFault = 'applied, then 500' | 'applied, then cut' | 'cut' | 'throttled' | 'transaction conflict'

interface Write {
  TableName: string
  Key?: Item
  Item?: Item
  UpdateExpression?: string
  ConditionExpression?: string
  ExpressionAttributeNames?: Record<string, string>
  ExpressionAttributeValues?: Item
  ReturnValuesOnConditionCheckFailure?: string
}
interface Reason {
  Code: string
  Item?: Item
  Message?: string
}

/**
 * DynamoDB's wire as far as a guard uses it: GetItem, PutItem, UpdateItem and TransactWriteItems on one table with the key
 * `id`, with conditions, `ALL_OLD` in refusals, and transactions that are repeated under their token. No signatures, no quotas.
 */
export class FakeDynamo {
  readonly items = new Map<string, Item>()
  readonly faults: DynamoFault[] = []
  readonly requests: string[] = []
  table = 'table'
  readonly #transactions = new Map<string, unknown>()
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const action = String(request.headers['x-amz-target']).split('.')[1] as string
    const body = JSON.parse(Buffer.concat(chunks).toString())
    this.requests.push(action)
    const fault = action === 'GetItem' ? undefined : this.faults.shift()
    if (fault === 'cut') return void request.socket.destroy()
    if (fault === 'throttled') return refuse(response, 'ProvisionedThroughputExceededException')
    if (fault === 'transaction conflict' && action !== 'TransactWriteItems') {
      return refuse(response, 'TransactionConflictException')
    }
    let answer: unknown
    try {
      if (fault === 'transaction conflict') throw cancelled([{ Code: 'TransactionConflict' }])
      answer = this.#do(action, body)
    } catch (error) {
      if (error instanceof ValidationError) return refuse(response, 'ValidationException', { message: error.message })
      if (error instanceof Refusal) return refuse(response, error.type, error.extra)
      throw error
    }
    if (fault === 'applied, then cut') return void request.socket.destroy()
    if (fault === 'applied, then 500') return send(response, 500, { __type: 'InternalServerError' })
    send(response, 200, answer)
  }

  #do(action: string, body: Write & { TransactItems?: Record<string, Write>[]; ClientRequestToken?: string }): unknown {
    if (action === 'TransactWriteItems') return this.#transact(body.TransactItems ?? [], body.ClientRequestToken)
    if (body.TableName !== this.table) throw new Refusal('ResourceNotFoundException', { message: 'no such table' })
    if (action === 'GetItem') return { Item: this.items.get(keyOf(body)) }
    const next = this.#next(body)
    if ('Code' in next) {
      const { Code: _, ...extra } = next as Reason
      throw new Refusal('ConditionalCheckFailedException', { message: 'The conditional request failed', ...extra })
    }
    this.items.set(keyOf(body), next as Item)
    return action === 'UpdateItem' ? { Attributes: next } : {}
  }

  /** The item after a write, or why it is refused. */
  #next(write: Write): Item | Reason {
    const before = this.items.get(keyOf(write))
    const expressions = new Expressions(write.ExpressionAttributeNames, write.ExpressionAttributeValues)
    const passes =
      write.ConditionExpression === undefined || expressions.condition(write.ConditionExpression, before ?? {})
    const base = before ?? (write.Key as Item)
    const next =
      write.UpdateExpression === undefined ? (write.Item ?? base) : expressions.update(write.UpdateExpression, base)
    expressions.checkAllUsed()
    if (passes) return next
    const old = write.ReturnValuesOnConditionCheckFailure === 'ALL_OLD' && before !== undefined
    return { Code: 'ConditionalCheckFailed', ...(old ? { Item: before } : {}) } as Reason
  }

  #transact(items: Record<string, Write>[], token: string | undefined): unknown {
    if (token !== undefined && token.length > 36) throw new ValidationError('ClientRequestToken is longer than 36')
    if (token !== undefined && this.#transactions.has(token)) return this.#transactions.get(token)
    const writes = items.map((one) => Object.entries(one)[0] as [string, Write])
    const keys = writes.map(([, write]) => keyOf(write))
    if (new Set(keys).size !== keys.length) throw new ValidationError('one item is named twice')
    const outcomes = writes.map(([, write]) => this.#next(write))
    if (outcomes.some((outcome) => 'Code' in outcome)) {
      throw cancelled(outcomes.map((outcome) => ('Code' in outcome ? (outcome as Reason) : { Code: 'None' })))
    }
    writes.forEach(([kind], i) => {
      if (kind === 'Delete') this.items.delete(keys[i] as string)
      else if (kind !== 'ConditionCheck') this.items.set(keys[i] as string, outcomes[i] as Item)
    })
    if (token !== undefined) this.#transactions.set(token, {})
    return {}
  }
}

class Refusal extends Error {
  readonly type: string
  readonly extra: object
  constructor(type: string, extra: object = {}) {
    super(type)
    this.type = type
    this.extra = extra
  }
}

function cancelled(reasons: Reason[]): Refusal {
  const codes = reasons.map((reason) => reason.Code).join(', ')
  return new Refusal('TransactionCanceledException', {
    Message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    CancellationReasons: reasons,
  })
}

function keyOf(write: Write): string {
  const id = (write.Key ?? write.Item)?.id?.S
  if (id === undefined) throw new ValidationError('the key is missing')
  return id
}

function refuse(response: ServerResponse, type: string, extra: object = {}): void {
  send(response, 400, { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: type, ...extra })
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body))
}
