import { AccessError, InvalidError, LeaseholdError, StorageError, UnavailableError } from '@leasehold/core'
import { unknownOutcome } from '../common/errors.js'
import { mismatch, staleToken, type Target } from '../common/resource.js'

const LOST_CONNECTION =
  /connection is closed|ECONN|EPIPE|ETIMEDOUT|command timed out|max retries per request|stream isn't writeable|socket closed/i
/** Nothing was sent. */
const NEVER_SENT = /isn't writeable|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH/i
/** The server rejected the command without effect: it is loading, is a replica now, or its cluster is incomplete. */
const NOT_NOW = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS|MOVED|ASK)\b/

/** Maps errors of the guard's scripts, the server and the connection to typed errors. Errors of other scripts pass unchanged. */
export function explain(error: unknown, target: Target, writes: boolean): unknown {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  return ofScript(error, message, target) ?? ofServer(error, message) ?? ofConnection(error, message, writes) ?? error
}

function ofScript(error: unknown, message: string, target: Target): unknown {
  const stale = /LEASEHOLDSTALE (\d{19})/.exec(message)
  if (stale !== null) return staleToken(target.mark, target.token, BigInt(stale[1] as string))
  if (message.includes('LEASEHOLDEXPIRES')) {
    return new InvalidError(`the key of ${JSON.stringify(target.mark)} has a TTL: its mark would expire`, {
      code: 'mismatch',
      cause: error,
      hint: 'PERSIST the key and never set a TTL on it: without the mark, old holders can write again',
    })
  }
  const other = /LEASEHOLDMISMATCH (\S+) (.*)/s.exec(message)
  if (other === null) return undefined
  const [, kind, lock] = other as unknown as [string, string, string]
  const expected = target.kind === 'slot' && kind !== 'slot' ? 'permits' : target.kind
  return mismatch(target, { kind, lock: lock.replace(/ script: .*$/s, '') }, expected)
}

function ofServer(error: unknown, message: string): unknown {
  if (NOT_NOW.test(message)) {
    return new UnavailableError(`Redis does not accept the command now: ${message}`, { cause: error })
  }
  if (/^(NOAUTH|WRONGPASS)\b/.test(message))
    return new AccessError(`Redis rejects the command: ${message}`, { cause: error })
  if (/^NOPERM\b/.test(message)) {
    const hint = 'where EVAL is forbidden, load the functions and use { functions: true }'
    return new AccessError(`Redis rejects the command: ${message}`, { code: 'forbidden', cause: error, hint })
  }
  if (/^(OOM|MISCONF)\b/.test(message)) {
    return new StorageError(`Redis cannot write: ${message}`, { cause: error, hint: 'nothing was written' })
  }
  if (/^WRONGTYPE\b|WRONGTYPE Operation/.test(message)) {
    return new InvalidError(`the key of the guard holds something else: ${message}`, { code: 'mismatch', cause: error })
  }
  if (/CROSSSLOT|different hash slots|non local key/i.test(message)) {
    const hint = 'begin your keys with guard.keyOf(resource): its hash tag keeps them in one slot'
    return new InvalidError(`the keys of a script are in different slots: ${message}`, { cause: error, hint })
  }
  if (/Function not found/i.test(message)) {
    const hint = 'load the library once: guard.install(), or redisLibrary() for an operator'
    return new InvalidError('the functions of the guard are not loaded in this Redis', { cause: error, hint })
  }
  return undefined
}

function ofConnection(error: unknown, message: string, writes: boolean): unknown {
  if (!LOST_CONNECTION.test(message)) return undefined
  // The write may have arrived even though its answer did not.
  if (!writes || NEVER_SENT.test(message)) {
    return new UnavailableError(`Redis is not reachable: ${message}`, { cause: error, hint: 'nothing was written' })
  }
  return unknownOutcome(error)
}
