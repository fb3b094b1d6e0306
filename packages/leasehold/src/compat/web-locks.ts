import type { Hold, Locks } from '@leasehold/client'
import { AbortedError, HoldLostError, InvalidError, LimitError, type Token } from '@leasehold/core'
import { locksOf } from './shared.js'

export type LockMode = 'exclusive' | 'shared'

export interface LockOptions {
  readonly mode?: LockMode
  readonly ifAvailable?: boolean
  readonly steal?: boolean
  readonly signal?: AbortSignal
}

/** The argument of the callback: a Web Lock, with the hold and the token for a guard. */
export interface Lock {
  readonly name: string
  readonly mode: LockMode
  readonly hold: Hold
  readonly token: Token
}

export interface LockInfo {
  readonly name: string
  readonly mode: LockMode
  /** Id of the session that holds or waits. */
  readonly clientId: string
}

export interface LockManagerSnapshot {
  readonly held: LockInfo[]
  readonly pending: LockInfo[]
}

type Callback<L, T> = (lock: L) => T | Promise<T>

/** The interface of `navigator.locks`. */
export interface LockManager {
  request<T>(name: string, callback: Callback<Lock, T>): Promise<T>
  request<T>(name: string, options: LockOptions & { ifAvailable: true }, callback: Callback<Lock | null, T>): Promise<T>
  request<T>(name: string, options: LockOptions, callback: Callback<Lock, T>): Promise<T>
  query(): Promise<LockManagerSnapshot>
}

const OPTIONS: readonly string[] = ['mode', 'ifAvailable', 'steal', 'signal']
/** Bound on the rows of one `query`, in both lists together. Exceeding it is an error, never a silent truncation. */
const QUERY_ROWS_MAX = 10_000

/**
 * Returns a lock manager like `navigator.locks`, whose locks are shared by all processes that use the service.
 * @example
 * const navigator = { locks: webLocks(createLocks('http://127.0.0.1:4100')) }
 * await navigator.locks.request('my_resource', async (lock) => { … })
 */
export function webLocks(client: Locks): LockManager {
  const locks = locksOf(client, 'webLocks')
  return {
    request: <T>(name: string, ...rest: readonly unknown[]) => request<T>(locks, name, rest),
    query: () => query(locks),
  }
}

async function request<T>(locks: Locks, name: string, rest: readonly unknown[]): Promise<T> {
  const [options, callback] = (rest.length < 2 ? [{}, rest[0]] : rest) as [LockOptions, Callback<Lock | null, T>]
  if (typeof callback !== 'function') throw new TypeError('request needs a callback')
  checkOptions(name, options)
  const { mode = 'exclusive', ifAvailable, steal, signal } = options
  if (signal?.aborted) throw signal.reason
  if (steal) await locks.steal(name, { reason: 'taken by a request with steal' })
  let onLost: (lost: HoldLostError) => void = () => {}
  const stolen = new Promise<HoldLostError>((resolve) => {
    onLost = resolve
  })
  const body = (hold: Hold | null) => {
    if (hold === null) return callback(null)
    void hold.lost.then((lost) => lost && onLost(lost))
    return callback({ name: hold.name, mode, hold, token: hold.token })
  }
  const done = ifAvailable
    ? locks.request<T>(name, { mode, ifAvailable }, body)
    : locks.request<T>(name, { mode, wait: Number.POSITIVE_INFINITY, ...(signal ? { signal } : {}) }, body)
  return rejectOnLoss(done, stolen, signal)
}

/** Rejects as soon as the lock is lost, even while the callback still runs, as a browser does. */
async function rejectOnLoss<T>(
  done: Promise<T>,
  stolen: Promise<HoldLostError>,
  signal: AbortSignal | undefined,
): Promise<T> {
  try {
    const rejected = stolen.then((lost) => Promise.reject<T>(lost))
    return await Promise.race([done, rejected])
  } catch (error) {
    done.catch(() => {})
    if (error instanceof HoldLostError) throw lostError(error)
    if (error instanceof AbortedError && signal?.aborted) throw signal.reason
    throw error
  }
}

function lostError(lost: HoldLostError): DOMException {
  const error = new DOMException(lost.message, 'AbortError')
  Object.defineProperty(error, 'cause', { value: lost, enumerable: false })
  return error
}

function checkOptions(name: unknown, options: LockOptions): void {
  if (typeof name !== 'string') throw new TypeError('the name of a lock is a string')
  if (name.startsWith('-')) throw unsupported("names cannot start with '-'")
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key))
      throw new InvalidError(`request has no option ${JSON.stringify(key)}`, { hint: `it has ${OPTIONS.join(', ')}` })
  }
  const { mode = 'exclusive', ifAvailable, steal, signal } = options
  if (mode !== 'exclusive' && mode !== 'shared')
    throw new TypeError(`mode is 'exclusive' or 'shared', not ${String(mode)}`)
  if (steal && ifAvailable) throw unsupported('steal and ifAvailable cannot be used together')
  if (steal && mode !== 'exclusive') throw unsupported("steal needs mode 'exclusive'")
  if (signal && (steal || ifAvailable)) throw unsupported('signal cannot be used together with steal or ifAvailable')
}

const unsupported = (message: string) => new DOMException(message, 'NotSupportedError')

async function query(locks: Locks): Promise<LockManagerSnapshot> {
  const held: LockInfo[] = []
  const pending: LockInfo[] = []
  let cursor: string | undefined
  do {
    const page = await locks.query(cursor === undefined ? {} : { cursor })
    for (const row of page.held) held.push(...infos(row.locks, row.session))
    for (const row of page.pending) pending.push(...infos(row.locks, row.session))
    cursor = page.next
    if (held.length + pending.length > QUERY_ROWS_MAX) {
      throw new LimitError(`there are more than ${QUERY_ROWS_MAX} locks`, {
        hint: 'locks.query({ prefix }) pages through them',
      })
    }
  } while (cursor !== undefined)
  return { held, pending }
}

/** Web Locks have no semaphores: a permit appears as shared. */
function infos(
  rows: readonly { readonly name: string; readonly mode: unknown }[],
  session: bigint | undefined,
): LockInfo[] {
  const clientId = session === undefined ? '' : session.toString()
  return rows.map(({ name, mode }) => ({ name, mode: mode === 'exclusive' ? 'exclusive' : 'shared', clientId }))
}
