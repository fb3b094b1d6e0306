import {
  COUNTER_MAX,
  covers,
  LimitError,
  type LockRequest,
  type Mode,
  StorageError,
  type Token,
  tokenOf,
} from '@leasehold/core'
import type { Serial } from '@leasehold/core'
import type { KeyValue } from './api/messages.js'

/**
 * The keys in etcd, below the prefix. Values are JSON, readable with `etcdctl get --prefix leasehold/`.
 *
 * - `epoch`: `{epoch, cluster, base}`, see {@link EpochRecord}.
 * - `s/SESSION`: an open or closed session, under its lease; `s/SESSION/w`: why a request of it has just ended;
 *   `s/SESSION/aN`: the answer of its write N.
 * - `o/SESSION`: exists while the session is open, under its lease. A session is closed before its lease ends, and no client may
 *   grant it anything in between.
 * - `k/NAME␀qREQUEST`: a request that waits, or has waited and holds; under the session's lease. Its create revision is
 *   its place in the queue.
 * - `k/NAME␀hREQUEST`: a hold; under the session's lease, or without one when it is persistent. Its create revision is
 *   its id.
 * - `k/NAME␀dREQUEST`: what blocks the lock after the hold's end; under a lease that outlives the session's.
 * - `r/KEY`: a register: a line of JSON, then the value as it is.
 */
export class Layout {
  constructor(readonly prefix: string) {}

  get epoch(): Buffer {
    return this.#key('epoch')
  }

  session(sid: string): Buffer {
    return this.#key(`s/${sid}`)
  }

  sessionEnd(sid: string): Buffer {
    return this.#key(`s/${sid}0`)
  }

  open(sid: string): Buffer {
    return this.#key(`o/${sid}`)
  }

  endReason(sid: string): Buffer {
    return this.#key(`s/${sid}/w`)
  }

  answer(sid: string, request: number): Buffer {
    return this.#key(`s/${sid}/a${request}`)
  }

  get sessions(): Span {
    return { key: this.#key('s/'), rangeEnd: this.#key('s0') }
  }

  waiter(name: string, request: string): Buffer {
    return this.#key(`k/${name}\0q${request}`)
  }

  hold(name: string, request: string): Buffer {
    return this.#key(`k/${name}\0h${request}`)
  }

  delay(name: string, request: string): Buffer {
    return this.#key(`k/${name}\0d${request}`)
  }

  /** Everything of one lock. */
  lock(name: string): Span {
    return { key: this.#key(`k/${name}\0`), rangeEnd: this.#key(`k/${name}\x01`) }
  }

  /** What blocks a lock: holds and delays. */
  blockers(name: string): Span {
    return { key: this.#key(`k/${name}\0d`), rangeEnd: this.#key(`k/${name}\0i`) }
  }

  waiters(name: string): Span {
    return { key: this.#key(`k/${name}\0q`), rangeEnd: this.#key(`k/${name}\0r`) }
  }

  /** All locks, or those whose names begin with `prefix`, and perhaps some that it does not cover. */
  locks(prefix = ''): Span {
    if (prefix === '') return { key: this.#key('k/'), rangeEnd: this.#key('k0') }
    return {
      key: this.#key(`k/${prefix.replace(/\/+$/, '')}`),
      rangeEnd: this.#key(`k/${prefix.replace(/\/+$/, '')}0`),
    }
  }

  register(key: string): Buffer {
    return this.#key(`r/${key}`)
  }

  get everything(): Span {
    return { key: this.#key(''), rangeEnd: Buffer.concat([Buffer.from(this.prefix).subarray(0, -1), Buffer.of(0x30)]) }
  }

  /** Parses a key; undefined: of no known kind. */
  parse(key: Buffer): ParsedKey | undefined {
    const text = key.toString('utf8').slice(this.prefix.length)
    if (text.startsWith('k/')) {
      const end = text.indexOf('\0')
      if (end < 0) return undefined
      const kind = text[end + 1]
      if (kind !== 'q' && kind !== 'h' && kind !== 'd') return undefined
      return { kind, name: text.slice(2, end), request: text.slice(end + 2) }
    }
    if (text.startsWith('r/')) return { kind: 'register', name: text.slice(2), request: '' }
    if (text.startsWith('s/')) {
      const [, sid = '', rest] = text.split('/')
      if (rest === undefined) return { kind: 'session', name: sid, request: '' }
      if (rest === 'w') return { kind: 'end-reason', name: sid, request: '' }
      return undefined
    }
    return text === 'epoch' ? { kind: 'epoch', name: '', request: '' } : undefined
  }

  #key(text: string): Buffer {
    return Buffer.from(this.prefix + text)
  }
}

export interface Span {
  readonly key: Buffer
  readonly rangeEnd: Buffer
}

export interface ParsedKey {
  readonly kind: 'q' | 'h' | 'd' | 'session' | 'end-reason' | 'register' | 'epoch'
  /** The lock, the register or the session. */
  readonly name: string
  readonly request: string
}

export interface EpochRecord {
  readonly epoch: number
  /** `ID/2`: the id of the etcd cluster in which it was set. Older versions, which know no base, take it for another etcd. */
  readonly cluster: string
  /** Added to 64 × revision in all serials from now on; it only grows. Absent in records of older versions: 0. */
  readonly base?: number
}

export interface SessionRecord {
  /** The base in force when the record was written; absent: 0. The same in all records. */
  readonly base?: number
  readonly state: 'open' | 'closed'
  readonly epoch: number
  readonly client: string
  readonly ttlMs: number
  readonly by?: 'owner' | 'operator'
  readonly reason?: string
}

/** The value of a request's keys: the same in each of its locks. */
export interface RequestRecord {
  readonly epoch: number
  readonly base?: number
  readonly sid: string
  /** The session's full id. */
  readonly session: string
  readonly client: string
  readonly number: number
  readonly locks: readonly LockRequest[]
  /** By the clock of the requesting client; for display only. */
  readonly at: number
  readonly waitMs: number | null
  readonly delayMs: number
  /** The lease of the keys that block after the end. */
  readonly delayLease: string
  readonly persistent: boolean
  /** SHA-256 of the secret for a hand-over. */
  readonly secret?: string
  readonly data: string
}

export interface HoldRecord extends RequestRecord {
  /** Which of the grants of its transaction it is. */
  readonly ordinal: number
  readonly grantedAt: number
  /** Per lock. */
  readonly terms: readonly Terms[]
}

export interface Terms {
  readonly slot?: number
  /** A shared lock's token, if its generation existed already. */
  readonly token?: string
  /** Otherwise the grant of the same transaction that began its generation. */
  readonly first?: number
}

/** Why something ended in this revision. */
export interface EndReasonRecord {
  readonly what: 'stolen' | 'moved' | 'timeout' | 'cancelled'
  readonly request: string
  readonly actor: string
  readonly text: string
}

/** Bits that distinguish the ids of the grants of one transaction. */
const ORDINAL_BITS = 6
export const GRANTS_PER_TXN_MAX = 2 ** ORDINAL_BITS
/** The epoch and base in force, of which ids are made. */
export interface Numbering {
  readonly epoch: number
  readonly base?: number
}

/** The serial of a revision, the counter part of every full id: base + 64 × revision + ordinal. @throws LimitError */
export function serialOf({ base = 0 }: Pick<Numbering, 'base'>, revision: number, ordinal = 0): Serial {
  const serial = base + revision * GRANTS_PER_TXN_MAX + ordinal
  if (serial <= COUNTER_MAX) return serial as Serial
  throw new LimitError(`revision ${revision} above base ${base} exceeds the range of tokens`, {
    hint: 'raise the epoch: leasehold engines epoch N',
  })
}

/** The revision and ordinal of a serial that was made with this base. */
export function revisionOf({ base = 0 }: Pick<Numbering, 'base'>, serial: number): Place {
  const place = serial - base
  return { revision: Math.floor(place / GRANTS_PER_TXN_MAX), ordinal: place % GRANTS_PER_TXN_MAX }
}

export interface Place {
  readonly revision: number
  readonly ordinal: number
}

export function idOf(numbering: Numbering, revision: number, ordinal = 0): Token {
  return tokenOf(numbering.epoch, serialOf(numbering, revision, ordinal))
}

export interface HeldView {
  readonly id: Token
  readonly serial: Serial
  readonly locks: readonly { name: string; mode: Mode; token: Token; serial: Serial; slot?: number }[]
}

/** The id, tokens and slots of a hold whose keys were made at `revision`. */
export function heldView(record: HoldRecord, revision: number): HeldView {
  const serial = serialOf(record, revision, record.ordinal)
  return {
    id: tokenOf(record.epoch, serial),
    serial,
    locks: record.locks.map(({ name, mode }, i) => {
      const { slot, token, first } = record.terms[i] as Terms
      const own = token === undefined ? serialOf(record, revision, first ?? record.ordinal) : serialPart(token)
      return {
        name,
        mode,
        token: tokenOf(record.epoch, own),
        serial: own,
        ...(slot === undefined ? {} : { slot }),
      }
    }),
  }
}

/** The serial of a full id, given as text. */
export function serialPart(id: string): Serial {
  return Number(BigInt(id) & (2n ** 48n - 1n)) as Serial
}

export function recordOf<T>(kv: Pick<KeyValue, 'key' | 'value'>): T {
  try {
    return JSON.parse(kv.value.toString('utf8')) as T
  } catch (cause) {
    throw new StorageError(`the value of ${JSON.stringify(kv.key.toString('utf8'))} is not ours`, { cause })
  }
}

export function bytesOf(record: object): Buffer {
  return Buffer.from(JSON.stringify(record))
}

export function inPrefix(prefix: string, name: string): boolean {
  return prefix === '' || covers(prefix, name)
}
