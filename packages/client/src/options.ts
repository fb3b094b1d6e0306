import {
  checkName,
  DEFAULT_LIMITS,
  type Duration,
  InvalidError,
  type LockRequest,
  type Mode,
  nameProblem,
  parseDuration,
  PERMITS_MAX,
  TEXT_BYTES_MAX,
} from '@leasehold/core'

/** Options of a client. */
export interface LocksOptions {
  /** Credential for the service. Not a fencing token. */
  readonly apiKey?: string
  /** Lease time of sessions: how long a lock stays held after its holder has died. Default 10 s; 100 ms … 24 h. */
  readonly ttl?: Duration
  /** How long `acquire` and `request` wait for a lock. Default 30 s; `Infinity` is allowed. */
  readonly wait?: Duration
  /** How long before the end of the TTL a hold stops being held here. At least a tenth of the TTL; the default is that, and at least 20 ms. */
  readonly margin?: Duration
  /** How long to wait for a connection before the service counts as unreachable. Default 5 s. */
  readonly connectTimeout?: Duration
  /** A prefix for all names of this client: `team-a` makes `x` the lock `team-a/x`. */
  readonly namespace?: string
  /** Shown as the holder of a lock. At most 256 bytes. */
  readonly clientName?: string
}

/** Options of an acquire. */
export interface AcquireOptions {
  /** Lease time of the hold's session. Default: the client's. */
  readonly ttl?: Duration
  /** How long to wait: 0 does not wait (`BusyError`), `Infinity` has no end. Default: the client's, 30 s. */
  readonly wait?: Duration
  /** See {@link LocksOptions.margin}. */
  readonly margin?: Duration
  /** `'exclusive'` (default) or `'shared'`, for names without a mode of their own. */
  readonly mode?: 'exclusive' | 'shared'
  /** Takes one of this many permits instead. All users of the name must give the same number. */
  readonly permits?: number
  /** Ends the waiting with `AbortedError`. Has no meaning once the lock is held: see `hold.signal` for that. */
  readonly signal?: AbortSignal
  /** After a loss (not after a release) the lock stays blocked this long. At most 60 s. */
  readonly lockDelay?: Duration
  /** The hold outlives its session and this process, until it is released or stolen. */
  readonly persistent?: boolean
  /** The hold can be handed over with `hold.serialize()`. */
  readonly portable?: boolean
  /** Shown with the lock by queries. At most 4 KiB. */
  readonly data?: string | Uint8Array
  /** `false`: the lease is not renewed and ends one TTL after the grant. Default `true`. */
  readonly renew?: boolean
  /** The longest time the hold may last, renewals or not. */
  readonly maxHold?: Duration
}

export interface RequestOptions extends AcquireOptions {
  /** Does not wait: the callback gets `null` if the lock is not free at once. */
  readonly ifAvailable?: boolean
}

/** A lock by name, or with a mode of its own. */
export type LockName = string | { readonly name: string; readonly mode?: Mode; readonly permits?: number }
export type LockNames = LockName | readonly LockName[]

export interface ClientSettings {
  readonly ttlMs: number
  readonly waitMs: number
  readonly marginMs: number | undefined
  readonly connectTimeoutMs: number
  readonly prefix: string
  readonly clientName: string
}

/** An acquire, checked and complete. Names carry the client's namespace. */
export interface AcquirePlan {
  readonly locks: readonly LockRequest[]
  readonly ttlMs: number
  readonly marginMs: number
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
  readonly lockDelayMs: number
  readonly persistent: boolean
  readonly portable: boolean
  readonly data: Uint8Array
  readonly renew: boolean
  readonly maxHoldMs: number
}

export const TTL_DEFAULT_MS = 10_000
export const WAIT_DEFAULT_MS = 30_000
export const CONNECT_TIMEOUT_DEFAULT_MS = 5_000
export const MARGIN_MIN_MS = 20
/** The default limits of a service: the client rejects what is beyond them without a request. */
const { ttlMinMs, ttlMaxMs, lockDelayMaxMs, locksPerAcquire, dataBytes } = DEFAULT_LIMITS

const LOCKS_KEYS: readonly string[] = ['apiKey', 'ttl', 'wait', 'margin', 'connectTimeout', 'namespace', 'clientName']
const ACQUIRE_KEYS: readonly string[] = [
  'ttl',
  'wait',
  'margin',
  'mode',
  'permits',
  'signal',
  'lockDelay',
  'persistent',
  'portable',
  'data',
  'renew',
  'maxHold',
]
/** The options of a call without options. */
export const NO_OPTIONS: RequestOptions = Object.freeze({})
const REQUEST_KEYS: readonly string[] = [...ACQUIRE_KEYS, 'ifAvailable']

/** Rejects unknown options, since a misspelt one would be ignored silently. @throws InvalidError */
export function checkKeys(options: object, known: readonly string[], what: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidError(`${what}: options are an object, such as { ${known[0]}: … }, not ${describe(options)}`)
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue
    throw new InvalidError(`${what} has no option ${JSON.stringify(key.slice(0, 40))}`, {
      hint: `it knows ${known.join(', ')}`,
    })
  }
}

export function checkFlag(value: unknown, what: string): boolean {
  if (value === undefined) return false
  if (typeof value !== 'boolean') {
    throw new InvalidError(`${what} is true or false, not ${describe(value)}`, { hint: `write ${what}: true` })
  }
  return value
}

/** Describes a wrong value for a message: short, without the contents of objects. */
export function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40))
  return typeof value === 'number' || typeof value === 'boolean' || value === null ? String(value) : `a ${typeof value}`
}

function ttlOf(value: Duration, what: string): number {
  const ms = parseDuration(value, what, { noSmallNumbers: true })
  if (ms < ttlMinMs || ms > ttlMaxMs) {
    throw new InvalidError(`${what} is between 100ms and 24h, not ${ms} ms`, { hint: "write ttl: '10s'" })
  }
  return ms
}

/** The margin for a TTL: checked when given, a tenth of the TTL and at least 20 ms otherwise. @throws InvalidError */
export function marginOf(ttlMs: number, givenMs: number | undefined): number {
  if (givenMs === undefined) return Math.max(Math.ceil(ttlMs / 10), MARGIN_MIN_MS)
  if (givenMs * 10 < ttlMs) {
    throw new InvalidError(`margin: ${givenMs} ms is less than a tenth of the ttl of ${ttlMs} ms`, {
      hint: `clocks may differ by 5 %, and with a smaller margin a lock that has passed on could still count as held; write margin: '${Math.ceil(ttlMs / 10)}ms' or more`,
    })
  }
  if (givenMs >= ttlMs) {
    throw new InvalidError(`margin: ${givenMs} ms leaves nothing of the ttl of ${ttlMs} ms`, {
      hint: `leave it out, or write margin: '${Math.max(Math.ceil(ttlMs / 10), MARGIN_MIN_MS)}ms'`,
    })
  }
  return givenMs
}

/** The client's margin where it fits the TTL of the call; undefined: the default. */
function marginFor(ttlMs: number, settings: ClientSettings): number | undefined {
  const margin = settings.marginMs
  return margin !== undefined && margin * 10 >= ttlMs && margin < ttlMs ? margin : undefined
}

function waitOf(value: Duration): number {
  return parseDuration(value, 'wait', { infinite: true, noSmallNumbers: true })
}

/** @throws InvalidError */
export function clientSettings(options: LocksOptions, alsoKnown: readonly string[] = []): ClientSettings {
  checkKeys(options, [...LOCKS_KEYS, ...alsoKnown], 'createLocks')
  const ttlMs = options.ttl === undefined ? TTL_DEFAULT_MS : ttlOf(options.ttl, 'ttl')
  const marginMs = options.margin === undefined ? undefined : parseDuration(options.margin, 'margin')
  marginOf(ttlMs, marginMs)
  const { clientName = '' } = options
  if (typeof clientName !== 'string' || new TextEncoder().encode(clientName).length > TEXT_BYTES_MAX) {
    throw new InvalidError(`clientName is a text of at most ${TEXT_BYTES_MAX} bytes, not ${describe(clientName)}`, {
      hint: "write clientName: 'worker 7'",
    })
  }
  if (options.apiKey !== undefined && typeof options.apiKey !== 'string') {
    throw new InvalidError(`apiKey is a text, not ${describe(options.apiKey)}`, {
      hint: "the text that 'leasehold key create' has printed",
    })
  }
  return {
    ttlMs,
    waitMs: options.wait === undefined ? WAIT_DEFAULT_MS : waitOf(options.wait),
    marginMs,
    connectTimeoutMs:
      options.connectTimeout === undefined
        ? CONNECT_TIMEOUT_DEFAULT_MS
        : moreThanZero(parseDuration(options.connectTimeout, 'connectTimeout'), 'connectTimeout'),
    prefix: options.namespace === undefined ? '' : prefixOf(options.namespace),
    clientName,
  }
}

function moreThanZero(ms: number, what: string): number {
  if (ms === 0) throw new InvalidError(`${what} is longer than 0`, { hint: `write ${what}: '5s'` })
  return ms
}

function prefixOf(namespace: unknown): string {
  const problem = nameProblem(namespace)
  if (problem !== undefined) {
    throw new InvalidError(`namespace: ${problem}`, { hint: "write namespace: 'team-a'; the lock x is team-a/x then" })
  }
  return `${(namespace as string).replace(/\/+$/, '')}/`
}

function modeOf(entry: { mode?: Mode; permits?: number }, fallback: Mode, what: string): Mode {
  if (entry.permits !== undefined) {
    if (entry.mode !== undefined)
      throw new InvalidError(`${what}: give mode or permits, not both`, { hint: 'write permits: 4' })
    return permitsOf(entry.permits, what)
  }
  const { mode = fallback } = entry
  if (mode === 'exclusive' || mode === 'shared') return mode
  if (typeof mode === 'object' && mode !== null && 'permits' in mode) return permitsOf(mode.permits, what)
  throw new InvalidError(`${what}: mode is 'exclusive' or 'shared', not ${describe(mode)}`, {
    hint: "write mode: 'shared', or permits: 4 for a semaphore",
  })
}

function permitsOf(permits: unknown, what: string): Mode {
  if (typeof permits === 'number' && Number.isSafeInteger(permits) && permits >= 1 && permits <= PERMITS_MAX) {
    return { permits }
  }
  throw new InvalidError(
    `${what}: permits is the number of permits of the semaphore, 1 to ${PERMITS_MAX}, not ${describe(permits)}`,
    {
      hint: 'write permits: 4; one permit is taken, the number says how many there are',
    },
  )
}

/** The locks of a call, each with its mode and in the client's namespace. @throws InvalidError */
export function locksOf(names: LockNames, options: AcquireOptions, prefix: string): LockRequest[] {
  const list = Array.isArray(names) ? (names as readonly LockName[]) : [names as LockName]
  if (list.length === 0) throw new InvalidError('name at least one lock', { hint: "write 'billing/invoice-42'" })
  if (list.length > locksPerAcquire) {
    throw new InvalidError(`at most ${locksPerAcquire} locks at once, not ${list.length}`)
  }
  const fallback = modeOf(options, 'exclusive', 'options')
  const seen = new Set<string>()
  return list.map((entry) => {
    const own = typeof entry === 'object' && entry !== null ? entry : { name: entry }
    checkKeys(own, ['name', 'mode', 'permits'], 'a lock')
    const name = checkName(own.name)
    if (seen.has(name)) throw new InvalidError(`the lock ${JSON.stringify(name)} is named twice`)
    seen.add(name)
    return { name: checkName(prefix + name), mode: modeOf(own, fallback, JSON.stringify(name)) }
  })
}

const NO_DATA = new Uint8Array(0)

export function dataOf(data: unknown): Uint8Array {
  if (data === undefined) return NO_DATA
  if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
    throw new InvalidError(`data is a text or bytes, not ${describe(data)}`, {
      hint: 'write data: JSON.stringify(value)',
    })
  }
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  if (bytes.length > dataBytes) {
    throw new InvalidError(`data has at most ${dataBytes} bytes, not ${bytes.length}`, {
      hint: 'keep large values elsewhere, and write a reference to them here',
    })
  }
  return bytes
}

export function signalOf(signal: unknown): AbortSignal | undefined {
  if (signal === undefined) return undefined
  const like = signal as Partial<AbortSignal> | null
  if (typeof like !== 'object' || like === null || typeof like.addEventListener !== 'function') {
    throw new InvalidError(`signal is an AbortSignal, not ${describe(signal)}`, {
      hint: 'write signal: AbortSignal.timeout(5_000), or that of an AbortController',
    })
  }
  return signal as AbortSignal
}

/** Checks the options of an acquire and adds the defaults. @throws InvalidError */
export function acquirePlan(
  names: LockNames,
  options: RequestOptions,
  settings: ClientSettings,
  what: 'acquire' | 'request' | 'tryAcquire' = 'acquire',
): AcquirePlan {
  if (options === NO_OPTIONS && typeof names === 'string') return simplePlan(names, settings)
  checkKeys(options, what === 'request' ? REQUEST_KEYS : ACQUIRE_KEYS, what)
  const locks = locksOf(names, options, settings.prefix)
  const ttlMs = options.ttl === undefined ? settings.ttlMs : ttlOf(options.ttl, 'ttl')
  const margin = options.margin === undefined ? marginFor(ttlMs, settings) : parseDuration(options.margin, 'margin')
  const lockDelayMs = options.lockDelay === undefined ? 0 : parseDuration(options.lockDelay, 'lockDelay')
  if (lockDelayMs > lockDelayMaxMs) {
    throw new InvalidError(`lockDelay is at most 60s, not ${lockDelayMs} ms`, { hint: "write lockDelay: '10s'" })
  }
  const persistent = checkFlag(options.persistent, 'persistent')
  const renew = options.renew === undefined ? true : checkFlag(options.renew, 'renew')
  const maxHoldMs =
    options.maxHold === undefined
      ? Number.POSITIVE_INFINITY
      : parseDuration(options.maxHold, 'maxHold', { infinite: true, noSmallNumbers: true })
  moreThanZero(maxHoldMs, 'maxHold')
  if (persistent && (!renew || maxHoldMs !== Number.POSITIVE_INFINITY)) {
    throw new InvalidError('a persistent hold has no deadline: renew: false and maxHold do not go with it', {
      hint: 'leave persistent: true out',
    })
  }
  const waitMs = options.wait === undefined ? settings.waitMs : waitOf(options.wait)
  return {
    locks,
    ttlMs,
    marginMs: marginOf(ttlMs, margin),
    waitMs,
    signal: signalOf(options.signal),
    lockDelayMs,
    persistent,
    portable: checkFlag(options.portable, 'portable'),
    data: dataOf(options.data),
    renew,
    maxHoldMs,
  }
}

/** One exclusive lock with the client's settings: the most frequent call. */
function simplePlan(given: string, settings: ClientSettings): AcquirePlan {
  const { prefix, ttlMs, marginMs, waitMs } = settings
  const name = prefix === '' ? checkName(given) : checkName(prefix + checkName(given))
  return {
    locks: [{ name, mode: 'exclusive' }],
    ttlMs,
    marginMs: marginOf(ttlMs, marginMs),
    waitMs,
    signal: undefined,
    lockDelayMs: 0,
    persistent: false,
    portable: false,
    data: NO_DATA,
    renew: true,
    maxHoldMs: Number.POSITIVE_INFINITY,
  }
}
