import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { deserialize, serialize } from 'bson'
import { CommandError, type Document, matches, textOf, updated } from './mongo-documents.js'

/** What happens to the next write. */
export type MongoFault = 'applied, then cut' | 'cut' | 'not majority' | 'write conflict'

interface Transaction {
  readonly startedAt: number
  readonly writes: Map<string, Document>
}
interface Command extends Document {
  $db?: string
  lsid?: Document
  txnNumber?: bigint
  autocommit?: boolean
  startTransaction?: boolean
}

const OP_MSG = 2013
const HEADER_BYTES = 16
const WIRE_VERSION = 21
const LOCKED_PAUSE_MS = 5

/**
 * MongoDB's wire (OP_MSG) as far as a guard uses it: a replica set of one, with `find`, `insert`, `findAndModify` with upsert,
 * E11000, retried writes that are answered once, write conflicts, and transactions. It has no indexes and no users.
 */
export class FakeMongo {
  readonly documents = new Map<string, Document>()
  readonly faults: MongoFault[] = []
  readonly commands: Command[] = []
  #port = 0
  #time = 0
  readonly #changedAt = new Map<string, number>()
  readonly #transactions = new Map<string, Transaction>()
  readonly #retried = new Map<string, Document>()
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((socket) => this.#serve(socket))

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
    return `mongodb://127.0.0.1:${this.#port}/?replicaSet=rs&serverSelectionTimeoutMS=2000`
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  find(collection: string, id: string): Document | undefined {
    return this.documents.get(keyOf(collection, id))
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => {})
    let rest = Buffer.alloc(0)
    let queue = Promise.resolve()
    socket.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes as Buffer])
      while (rest.length >= HEADER_BYTES && rest.length >= rest.readInt32LE(0)) {
        const message = rest.subarray(0, rest.readInt32LE(0))
        rest = rest.subarray(message.length)
        queue = queue.then(() => this.#answer(socket, message))
      }
    })
  }

  async #answer(socket: Socket, message: Buffer): Promise<void> {
    const command = commandOf(message)
    const name = Object.keys(command)[0] as string
    const isWrite = name === 'findAndModify' || name === 'insert' || name === 'commitTransaction'
    if (isWrite || name === 'find') this.commands.push(command)
    const fault = isWrite ? this.faults.shift() : undefined
    if (fault === 'cut') return void socket.destroy()
    let reply: Document
    try {
      if (fault === 'write conflict') throw conflict(command)
      reply = { ...(await this.#once(name, command)), ok: 1 }
      if (fault === 'not majority') {
        reply.writeConcernError = {
          code: 64,
          codeName: 'WriteConcernTimeout',
          errmsg: 'waiting for replication timed out',
        }
      }
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      reply = { ok: 0, code: error.code, codeName: `Code${error.code}`, errmsg: error.message, ...error.extra }
    }
    if (fault === 'applied, then cut') return void socket.destroy()
    socket.write(messageOf(reply, message.readInt32LE(4)))
  }

  /** A retried write is answered as it was the first time. */
  async #once(name: string, command: Command): Promise<Document> {
    const isRetryable = command.txnNumber !== undefined && command.autocommit === undefined
    const id = `${textOf(command.lsid)} ${String(command.txnNumber)}`
    if (isRetryable && this.#retried.has(id)) return this.#retried.get(id) as Document
    const reply = await this.#do(name, command)
    if (isRetryable) this.#retried.set(id, reply)
    return reply
  }

  async #do(name: string, command: Command): Promise<Document> {
    switch (name.toLowerCase()) {
      case 'hello':
      case 'ismaster':
        return this.#hello()
      case 'ping':
      case 'endsessions':
      case 'killcursors':
        return {}
      case 'find':
        return this.#find(command)
      case 'insert':
        return await this.#insert(command)
      case 'findandmodify':
        return await this.#findAndModify(command)
      case 'committransaction':
        return this.#commit(command)
      case 'aborttransaction':
        this.#transactions.delete(transactionId(command))
        return {}
      default:
        throw new CommandError(59, `no such command: '${name}'`)
    }
  }

  #hello(): Document {
    const me = `127.0.0.1:${this.#port}`
    return {
      helloOk: true,
      isWritablePrimary: true,
      ismaster: true,
      setName: 'rs',
      setVersion: 1,
      hosts: [me],
      primary: me,
      me,
      minWireVersion: 0,
      maxWireVersion: WIRE_VERSION,
      maxBsonObjectSize: 16_777_216,
      maxMessageSizeBytes: 48_000_000,
      maxWriteBatchSize: 100_000,
      logicalSessionTimeoutMinutes: 30,
    }
  }

  #find(command: Command): Document {
    const collection = String(command.find)
    const found = this.#visible(command).filter(([key]) => key.startsWith(`${collection}/`))
    const firstBatch = found.map(([, document]) => document).filter((one) => matches(command.filter as Document, one))
    return { cursor: { id: 0n, ns: `${command.$db}.${collection}`, firstBatch } }
  }

  async #insert(command: Command): Promise<Document> {
    for (const document of command.documents as Document[]) {
      const key = keyOf(String(command.insert), document._id)
      if (this.documents.has(key)) throw duplicate()
      await this.#write(command, key, document)
    }
    return { n: (command.documents as Document[]).length }
  }

  async #findAndModify(command: Command): Promise<Document> {
    const query = command.query as Document
    const key = keyOf(String(command.findAndModify), query._id)
    await this.#free(command, key)
    const before = this.#visible(command).find(([other]) => other === key)?.[1]
    const found = before !== undefined && matches(query, before)
    if (!found && command.upsert !== true) return { value: null, lastErrorObject: { n: 0, updatedExisting: false } }
    if (!found && before !== undefined) throw duplicate()
    const after = updated(command.update as Document, found ? (before as Document) : { _id: query._id })
    await this.#write(command, key, after)
    return { value: command.new === true ? after : (before ?? null), lastErrorObject: { n: 1, updatedExisting: found } }
  }

  /** What a command sees: its own transaction's writes first. */
  #visible(command: Command): [string, Document][] {
    const mine = this.#transaction(command)?.writes
    return [...new Map([...this.documents, ...(mine ?? [])])]
  }

  async #write(command: Command, key: string, document: Document): Promise<void> {
    await this.#free(command, key)
    const transaction = this.#transaction(command)
    if (transaction === undefined) {
      this.documents.set(key, document)
      this.#changedAt.set(key, ++this.#time)
      return
    }
    if ((this.#changedAt.get(key) ?? 0) > transaction.startedAt) {
      this.#transactions.delete(transactionId(command))
      throw conflict(command)
    }
    transaction.writes.set(key, document)
  }

  /** A document that another transaction has written: transactions are refused, single writes wait. */
  async #free(command: Command, key: string): Promise<void> {
    const mine = this.#transaction(command)
    const isLocked = () => [...this.#transactions.values()].some((other) => other !== mine && other.writes.has(key))
    if (mine !== undefined && isLocked()) {
      this.#transactions.delete(transactionId(command))
      throw conflict(command)
    }
    while (isLocked()) await new Promise((resolve) => setTimeout(resolve, LOCKED_PAUSE_MS))
  }

  #transaction(command: Command): Transaction | undefined {
    if (command.autocommit !== false) return undefined
    const id = transactionId(command)
    if (command.startTransaction === true && !this.#transactions.has(id)) {
      this.#transactions.set(id, { startedAt: this.#time, writes: new Map() })
    }
    const transaction = this.#transactions.get(id)
    if (transaction === undefined)
      throw new CommandError(251, 'no such transaction', { errorLabels: ['TransientTransactionError'] })
    return transaction
  }

  #commit(command: Command): Document {
    const id = transactionId(command)
    for (const [key, document] of this.#transaction(command)?.writes ?? []) {
      this.documents.set(key, document)
      this.#changedAt.set(key, ++this.#time)
    }
    this.#transactions.delete(id)
    return {}
  }
}

function transactionId(command: Command): string {
  return `${textOf(command.lsid)} ${String(command.txnNumber)}`
}

function conflict(command: Command): CommandError {
  const labels = command.autocommit === false ? { errorLabels: ['TransientTransactionError'] } : {}
  return new CommandError(112, 'Write conflict during plan execution and yielding is disabled', labels)
}

function duplicate(): CommandError {
  const keys = { keyPattern: { _id: 1 } }
  return new CommandError(11_000, 'E11000 duplicate key error collection: _id_ dup key', keys)
}

function keyOf(collection: string, id: unknown): string {
  return `${collection}/${typeof id === 'string' ? id : textOf(id)}`
}

function commandOf(message: Buffer): Command {
  const opCode = message.readInt32LE(12)
  // The first hello of a connection may come as an old OP_QUERY.
  if (opCode !== OP_MSG)
    return deserialize(message.subarray(message.indexOf(0, HEADER_BYTES + 4) + 9), { useBigInt64: true })
  let at = HEADER_BYTES + 4
  let command: Command = {}
  const sections: [string, Document[]][] = []
  while (at < message.length) {
    const kind = message[at++]
    const size = message.readInt32LE(at)
    if (kind === 0) command = deserialize(message.subarray(at, at + size), { useBigInt64: true })
    else sections.push(sectionOf(message.subarray(at + 4, at + size)))
    at += size
  }
  return Object.assign(command, Object.fromEntries(sections))
}

function sectionOf(bytes: Buffer): [string, Document[]] {
  const end = bytes.indexOf(0)
  const documents: Document[] = []
  for (let at = end + 1; at < bytes.length; at += bytes.readInt32LE(at)) {
    documents.push(deserialize(bytes.subarray(at, at + bytes.readInt32LE(at)), { useBigInt64: true }))
  }
  return [bytes.subarray(0, end).toString(), documents]
}

let lastId = 0
function messageOf(reply: Document, responseTo: number): Buffer {
  const body = serialize(reply, { ignoreUndefined: true })
  const message = Buffer.alloc(HEADER_BYTES + 5 + body.length)
  message.writeInt32LE(message.length, 0)
  message.writeInt32LE(++lastId, 4)
  message.writeInt32LE(responseTo, 8)
  message.writeInt32LE(OP_MSG, 12)
  message.set(body, HEADER_BYTES + 5)
  return message
}
