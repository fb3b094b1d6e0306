import {
  errorOf,
  LeaseholdError,
  LimitError,
  NotHolderError,
  splitToken,
  UnavailableError,
  UnknownOutcomeError,
  VersionConflictError,
} from '@leasehold/core'
import { idOf, type Numbering, revisionOf } from './layout.js'
import type { Compare, KeyValue, Op } from './api/messages.js'
import type { OwnHold, SessionContext } from './session-context.js'
import { kvsOf } from './store.js'

export interface RegisterWrite {
  readonly key: string
  /** Undefined: it is deleted. */
  readonly value?: Uint8Array
  readonly ifVersion?: bigint
  readonly fence?: { readonly hold: bigint; readonly lock: string }
  readonly timeoutMs: number
}

interface Head {
  readonly epoch: number
  readonly base?: number
  readonly lock?: string
}

export const REGISTER_BYTES_MAX = 65_536
/** Answers of earlier writes that one write deletes. */
const ANSWERS_DELETED_MAX = 32
/** Attempts when other clients write the same register. */
const ATTEMPTS_MAX = 50
const LINE_END = 0x0a

export interface RegisterValue {
  readonly value: Uint8Array
  readonly version: bigint
  readonly lock: string | undefined
  /** The base that it was written with. */
  readonly base: number
}

export function registerOf(kv: KeyValue): RegisterValue {
  const end = kv.value.indexOf(LINE_END)
  try {
    const head = JSON.parse(kv.value.subarray(0, end).toString('utf8')) as Head
    const value = new Uint8Array(kv.value.subarray(end + 1))
    return { value, version: idOf(head, kv.modRevision), lock: head.lock, base: head.base ?? 0 }
  } catch (cause) {
    throw errorOf('storage', `the register ${JSON.stringify(kv.key.toString('utf8'))} is not ours: ${String(cause)}`)
  }
}

/**
 * Writes a register if it is still as it was read. With the register goes an answer under the session's lease, by which a
 * write whose answer was lost is recognised. Returns the version.
 */
export async function writeRegister(
  session: SessionContext,
  write: RegisterWrite,
  own: (hold: bigint) => OwnHold | undefined,
): Promise<bigint> {
  const { value } = write
  if (value !== undefined && value.length > REGISTER_BYTES_MAX) {
    throw new LimitError(`a register has at most ${REGISTER_BYTES_MAX} bytes, not ${value.length}`)
  }
  return new Writing(session, write, own).run()
}

/** One write with its attempts. */
class Writing {
  readonly #session: SessionContext
  readonly #write: RegisterWrite
  readonly #own: (hold: bigint) => OwnHold | undefined
  readonly #answerKey: Buffer
  readonly #settled: readonly number[]
  #wasLost = false

  constructor(session: SessionContext, write: RegisterWrite, own: (hold: bigint) => OwnHold | undefined) {
    this.#session = session
    this.#write = write
    this.#own = own
    this.#answerKey = session.store.layout.answer(session.sid, session.nextRequest())
    this.#settled = session.settledWrites.splice(0, ANSWERS_DELETED_MAX)
  }

  async run(): Promise<bigint> {
    const { platform, settledWrites } = this.#session
    const endAt = platform.monotonicMs() + this.#write.timeoutMs
    try {
      for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
        const version = await this.#attempt(Math.max(1, endAt - platform.monotonicMs()))
        if (version !== undefined) return version
      }
      throw new UnavailableError(`register ${JSON.stringify(this.#write.key)}: too many clients write it at once`)
    } catch (error) {
      settledWrites.push(...this.#settled)
      if (this.#wasLost && error instanceof UnavailableError) {
        throw new UnknownOutcomeError('the write was sent, and its answer was lost: it may have taken effect', {
          cause: error,
        })
      }
      throw error
    }
  }

  /** Undefined: another client wrote the register in between. */
  async #attempt(timeoutMs: number): Promise<bigint | undefined> {
    const session = this.#session
    const write = this.#write
    const { store } = session
    const register = store.layout.register(write.key)
    const reads: Op[] = [{ range: { key: register } }, { range: { key: this.#answerKey } }]
    const read = await store.client.txn({ compare: [], success: reads, failure: [] }, { timeoutMs, repeatable: true })
    const [kv] = kvsOf(read.responses[0])
    const [done] = kvsOf(read.responses[1])
    if (done) return idOf({ epoch: store.epoch, base: baseOfAnswer(done.value) }, done.modRevision)
    const found = kv === undefined ? undefined : registerOf(kv)
    const fence = checkWrite(write, found, this.#own)
    const compare: Compare[] = [
      { result: 0, target: 2, key: register, modRevision: kv?.modRevision ?? 0 },
      { result: 0, target: 1, key: this.#answerKey, createRevision: 0 },
      ...(fence === undefined ? [] : [fence(session)]),
    ]
    let { numbering } = store
    const answer = await session.guarded(timeoutMs, (lost) => {
      this.#wasLost ||= lost
      numbering = store.numbering
      return { compare, success: this.#effects(numbering), failure: [] }
    })
    if (answer.inner.succeeded) {
      session.settledWrites.push(numberOf(this.#answerKey))
      return idOf(numbering, answer.revision)
    }
    if (fence !== undefined && !this.#wasLost) await checkFence(session, write, fence, timeoutMs)
    return undefined
  }

  /** The register, the answer, and the deletions of earlier answers that are no longer needed. */
  #effects(numbering: Numbering): Op[] {
    const session = this.#session
    const write = this.#write
    const { layout } = session.store
    const { key, value, fence } = write
    const head: Head = { ...numbering, ...(fence === undefined ? {} : { lock: fence.lock }) }
    const register = layout.register(key)
    const line = Buffer.from(`${JSON.stringify(head)}\n`)
    return [
      value === undefined
        ? { delete: { key: register } }
        : { put: { key: register, value: Buffer.concat([line, value]) } },
      { put: { key: this.#answerKey, value: Buffer.from(`b${numbering.base ?? 0}`), lease: session.leaseId } },
      ...this.#settled.map((old): Op => ({ delete: { key: layout.answer(session.sid, old) } })),
    ]
  }
}

/** The base with which the version of an answer was made. Answers of older versions are `1`, and have none. */
function baseOfAnswer(value: Buffer): number {
  const text = value.toString('utf8')
  return text.startsWith('b') ? Number(text.slice(1)) : 0
}

function numberOf(answerKey: Buffer): number {
  return Number(/a(\d+)$/.exec(answerKey.toString('utf8'))?.[1])
}

type FenceCheck = (session: SessionContext) => Compare

/** Rejects a write that is not allowed, and returns the check of its fence. */
function checkWrite(
  { key, ifVersion, fence }: RegisterWrite,
  found: RegisterValue | undefined,
  own: (hold: bigint) => OwnHold | undefined,
): FenceCheck | undefined {
  const name = JSON.stringify(key)
  const lock = found?.lock
  let check: FenceCheck | undefined
  if (fence === undefined) {
    if (lock !== undefined) throw errorOf('mismatch', `register ${name} is fenced by the lock ${JSON.stringify(lock)}`)
  } else {
    if (lock !== undefined && lock !== fence.lock) {
      throw errorOf(
        'mismatch',
        `register ${name} is fenced by ${JSON.stringify(lock)}, not ${JSON.stringify(fence.lock)}`,
      )
    }
    if (lock === undefined && ifVersion === undefined) {
      throw errorOf('invalid', `the first fenced write of register ${name} needs ifVersion`)
    }
    check = fenceOf(fence, own)
  }
  const version = found?.version ?? 0n
  if (ifVersion !== undefined && ifVersion !== version) {
    const text = version === 0n ? 'does not exist' : `has version ${version}`
    throw new VersionConflictError(`register ${name} ${text}`, version)
  }
  return check
}

function fenceOf(fence: { hold: bigint; lock: string }, own: (hold: bigint) => OwnHold | undefined): FenceCheck {
  const hold = own(fence.hold)
  const held = hold?.record.locks.find(({ name }) => name === fence.lock)
  if (hold === undefined || held === undefined) throw fenceIsOver(fence)
  if (held.mode !== 'exclusive') throw errorOf('mismatch', 'a fence is an exclusive hold')
  const { revision } = revisionOf(hold.record, splitToken(fence.hold).serial)
  return ({ store }) => {
    return { result: 0, target: 1, key: store.layout.hold(fence.lock, hold.request), createRevision: revision }
  }
}

async function checkFence(
  session: SessionContext,
  write: RegisterWrite,
  fence: FenceCheck,
  timeoutMs: number,
): Promise<void> {
  const { key, createRevision } = fence(session)
  const { kvs } = await session.store.client.range({ key, keysOnly: true }, timeoutMs)
  if (kvs[0]?.createRevision !== createRevision) throw fenceIsOver(write.fence as { hold: bigint; lock: string })
}

function fenceIsOver({ hold, lock }: { hold: bigint; lock: string }): LeaseholdError {
  return new NotHolderError(`hold ${hold} of ${JSON.stringify(lock)} does not exist (any more)`)
}
