import { InvalidError, UnavailableError } from '@leasehold/core'
import { checkedAttempts, pauseAfter } from '../common/attempts.js'
import { type CasPlatform, platform } from '../common/platform.js'
import { MissingRowError, messageOf, unavailable, unknownOutcome } from '../common/errors.js'
import type { GuardOptions } from '../common/guard.js'
import { describe } from '../common/hold.js'
import { mismatch, staleToken, type Target } from '../common/resource.js'
import { checkWrites } from '../common/single-target.js'
import type { Fields, MongoCollection, MongoSession } from './client.js'
import { failureOf, isTransient } from './errors.js'

export interface MongoOptions extends GuardOptions {
  /** The `_id` of a resource's document. Default: the resource. */
  readonly id?: (resource: string) => unknown
  /** How often a change is attempted when others are faster, the primary changes, or answers are lost. Default 10. */
  readonly attempts?: number
  /** What the guard uses of the machine; for tests and simulations. */
  readonly platform?: Partial<CasPlatform>
}

/** The guard's field, in the document that it protects. */
const FIELD = 'leasehold'
const MAJORITY = { writeConcern: { w: 'majority' }, returnDocument: 'after' } as const

interface Marked {
  readonly mark?: bigint
  readonly kind?: string
  readonly lock?: string
  readonly write?: string
}
type Unknown = { readonly error: unknown } | undefined

/** One document during one unit of work of a hold. */
export class MongoDocument {
  readonly #collection: MongoCollection
  readonly #options: MongoOptions
  readonly #target: Target
  readonly #attempts: number
  readonly #platform: CasPlatform
  readonly #check: () => void
  #seen: Fields = {}

  constructor(collection: MongoCollection, options: MongoOptions, target: Target, check: () => void) {
    this.#collection = collection
    this.#options = options
    this.#target = target
    this.#attempts = checkedAttempts(options.attempts)
    this.#platform = { ...platform, ...options.platform }
    this.#check = check
  }

  static async latest(collection: MongoCollection, options: MongoOptions, resource: string): Promise<Fields | null> {
    const filter = { _id: idOf(options, resource) }
    try {
      const found = await collection.findOne(
        filter as never,
        { readConcern: { level: 'majority' }, readPreference: 'primary' } as never,
      )
      return withoutGuard((found ?? {}) as Fields)
    } catch (error) {
      throw explain(error)
    }
  }

  get document(): Fields | null {
    return withoutGuard(this.#seen)
  }

  async open(session?: MongoSession): Promise<void> {
    const { kind, resource, mark, lock, token } = this.#target
    if (kind === 'slot') await this.#keepKind(resource, lock)
    const filter = { _id: idOf(this.#options, mark), ...this.#mine() }
    const set = { $set: { [`${FIELD}.mark`]: token, [`${FIELD}.kind`]: kind, [`${FIELD}.lock`]: lock } }
    const options =
      session === undefined ? { ...MAJORITY, upsert: true } : { session, returnDocument: 'after', upsert: true }
    await this.#try(undefined, mark, kind, session, () =>
      this.#collection.findOneAndUpdate(filter as never, set as never, options as never),
    )
  }

  async update(change: Fields): Promise<Fields> {
    if (typeof change !== 'object' || change === null || Array.isArray(change)) {
      throw new InvalidError(`an update is an object of operators, not ${describe(change)}`)
    }
    for (const [operator, fields] of Object.entries(change)) {
      if (!operator.startsWith('$')) throw new InvalidError(`an update has operators like $set, not ${operator}`)
      for (const [field, value] of Object.entries((fields ?? {}) as Fields)) {
        checkField(field)
        if (operator === '$rename') checkField(String(value))
      }
    }
    const { filter, write, guard } = this.#write()
    const $set = { ...(change.$set as Fields | undefined), [FIELD]: guard }
    await this.#try(write, this.#target.mark, this.#target.kind, undefined, () =>
      this.#collection.findOneAndUpdate(filter as never, { ...change, $set } as never, MAJORITY as never),
    )
    return this.document ?? {}
  }

  async replace(document: Fields): Promise<void> {
    for (const field of Object.keys(document)) checkField(field)
    const { filter, write, guard } = this.#write()
    const replacement = { ...document, _id: filter._id, [FIELD]: guard }
    await this.#try(write, this.#target.mark, this.#target.kind, undefined, () =>
      this.#collection.findOneAndReplace(filter as never, replacement as never, MAJORITY as never),
    )
  }

  async delete(): Promise<void> {
    await this.replace({})
  }

  /** For permits, a document of the bare resource stores the kind. */
  async #keepKind(resource: string, lock: string): Promise<void> {
    const kind = 'permits'
    const filter = { _id: idOf(this.#options, resource), ...ownedBy(kind, lock) }
    const set = { $set: { [`${FIELD}.kind`]: kind, [`${FIELD}.lock`]: lock } }
    const seen = this.#seen
    await this.#try(undefined, resource, kind, undefined, () =>
      this.#collection.findOneAndUpdate(filter as never, set as never, { ...MAJORITY, upsert: true } as never),
    )
    this.#seen = seen
  }

  /** Matches if the stored mark is not above the token and the document does not belong to another lock. */
  #mine() {
    const { kind, lock, token } = this.#target
    const mark = `${FIELD}.mark`
    const passes = { $or: [{ [mark]: { $exists: false } }, { [mark]: { $lte: token } }] }
    return { $and: [passes, ownedBy(kind, lock)] }
  }

  /** A write is conditional on the write that this unit has seen, so a delayed retry of an earlier write matches nothing. */
  #write() {
    checkWrites(this.#target)
    const { kind, lock, mark, token } = this.#target
    const write = this.#platform.newId()
    const before = markedOf(this.#seen).write ?? null
    const filter = { _id: idOf(this.#options, mark), ...this.#mine(), [`${FIELD}.write`]: before }
    return { filter, write, guard: { mark: token, kind, lock, write } }
  }

  /** Sends a change, with retries. A retry of a write that has taken effect matches nothing, and is recognized by its id. */
  async #try(
    write: string | undefined,
    resource: string,
    kind: string,
    session: MongoSession | undefined,
    send: () => Promise<unknown>,
  ): Promise<void> {
    let unknown: Unknown
    let last: unknown
    for (let n = 1; n <= this.#attempts; n++) {
      this.#checkHeld(unknown)
      let rejected = false
      try {
        const found = await send()
        if (found !== null) {
          this.#seen = found as Fields
          return
        }
        rejected = true
      } catch (error) {
        // The transaction is aborted: its owner retries it.
        if (session !== undefined && isTransient(error)) throw error
        last = error
        const failure = failureOf(error)
        if (failure.kind === 'definite') throw unknown === undefined ? failure.error : unknownOutcome(unknown.error)
        if (failure.kind === 'unknown' && write !== undefined) unknown = { error }
        rejected = failure.kind === 'exists'
      }
      if (rejected && (await this.#look(write, resource, kind, unknown))) return
      // A rejected insertion has aborted the whole transaction.
      if (session !== undefined) throw contended(resource, last)
      if (n < this.#attempts) await pauseAfter(n, this.#platform)
    }
    throw unknown === undefined ? contended(resource, last) : unknownOutcome(unknown.error)
  }

  /** Determines why nothing matched: true if this write had taken effect before, false if the reason is gone. */
  async #look(write: string | undefined, resource: string, kind: string, unknown: Unknown): Promise<boolean> {
    const { mark, token } = this.#target
    const id = idOf(this.#options, resource)
    const options = { readPreference: 'primary', useBigInt64: true, promoteLongs: true, promoteValues: true }
    let found: Fields | null
    try {
      found = (await this.#collection.findOne({ _id: id } as never, options as never)) as Fields | null
    } catch (error) {
      throw unknown === undefined ? explain(error) : unknownOutcome(unknown.error)
    }
    const stored = markedOf(found ?? {})
    if (write !== undefined && stored.write === write) {
      this.#seen = found as Fields
      return true
    }
    if (stored.kind !== undefined && stored.lock !== undefined) {
      const problem = mismatch(this.#target, { kind: stored.kind, lock: stored.lock }, kind)
      if (problem !== undefined) throw problem
    }
    if (unknown !== undefined) throw unknownOutcome(unknown.error)
    const seen = stored.mark === undefined ? 0n : BigInt(stored.mark)
    if (seen > token) throw staleToken(mark, token, seen)
    if (write === undefined) return false
    if (found === null) throw new MissingRowError(this.#collection.collectionName, `_id ${String(id)}`)
    if (stored.write === markedOf(this.#seen).write) return false
    throw new InvalidError('this hold changes the document twice concurrently', {
      hint: 'wait for the first change',
    })
  }

  #checkHeld(unknown: Unknown): void {
    try {
      this.#check()
    } catch (error) {
      throw unknown === undefined ? error : unknownOutcome(error)
    }
  }
}

function ownedBy(kind: string, lock: string) {
  return { $or: [{ [`${FIELD}.kind`]: { $exists: false } }, { [`${FIELD}.kind`]: kind, [`${FIELD}.lock`]: lock }] }
}

function idOf(options: MongoOptions, resource: string): unknown {
  return options.id === undefined ? resource : options.id(resource)
}

function markedOf(document: Fields): Marked {
  return (document[FIELD] ?? {}) as Marked
}

function checkField(field: string): void {
  if (field === FIELD || field.startsWith(`${FIELD}.`))
    throw new InvalidError(`the field ${FIELD} belongs to the guard`)
}

/** The document without the guard's field; null if only `_id` is left. */
function withoutGuard(document: Fields): Fields | null {
  const { [FIELD]: _guard, ...rest } = document
  return Object.keys(rest).some((field) => field !== '_id') ? rest : null
}

function explain(error: unknown): unknown {
  const failure = failureOf(error)
  if (failure.kind === 'definite') return failure.error
  return unavailable('MongoDB is not available', error)
}

function contended(resource: string, cause: unknown): UnavailableError {
  const why = cause === undefined ? 'other writers were faster in every attempt' : messageOf(cause)
  return new UnavailableError(`the document of ${JSON.stringify(resource)} could not be changed: ${why}`, {
    cause,
    hint: 'nothing was written; the same call may succeed later',
  })
}
