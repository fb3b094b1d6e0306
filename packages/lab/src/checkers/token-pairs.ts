import type { Mode } from '@leasehold/core'

/** A lock that was granted, by one incarnation of the service: from its founding or restore to its end. */
export interface TokenGrant {
  readonly lock: string
  /** The whole token, with its epoch. */
  readonly token: bigint
  readonly mode: Mode
  /** The holder, for people: the hold's id, or a client. */
  readonly hold: string
  /** Default: there is only one. */
  readonly incarnation?: string | number
}

/** A grant whose place in the order is known only within bounds: between the request and its answer. */
export interface TimedGrant extends TokenGrant {
  readonly askedAt: number
  readonly knownAt: number
}

export interface TokenFault {
  /** `twice`: another grant had this token. `order`: the token is not above that of an earlier grant. */
  readonly rule: 'twice' | 'order'
  readonly text: string
}

/**
 * All (lock, token) pairs that were ever granted, by every incarnation of a service: no pair is granted twice, except within
 * a shared generation, and every later grant of a lock has a greater token. Keyed by the lock's name, and shares no code with
 * the lock state.
 */
export class TokenPairs {
  readonly #locks = new Map<string, Map<bigint, TokenGrant>>()
  readonly #newest = new Map<string, TokenGrant>()
  #incarnations = 0

  /** A service begins: founded, founded again, or restored. Returns the number of this incarnation. */
  begins(): number {
    return ++this.#incarnations
  }

  /** The next grant, in the order of the grants. Returns what is wrong with it. Costs the same at every grant. */
  granted(grant: TokenGrant): TokenFault | undefined {
    const twice = this.add(grant)
    const { lock, token } = grant
    const newest = this.#newest.get(lock)
    if (newest === undefined || token > newest.token) this.#newest.set(lock, grant)
    return twice ?? (newest === undefined ? undefined : orderOf(newest, grant))
  }

  /** A grant whose place in the order is not known. Returns what is wrong with the pair alone. */
  add(grant: TokenGrant): TokenFault | undefined {
    const { lock, token } = grant
    let tokens = this.#locks.get(lock)
    if (tokens === undefined) {
      tokens = new Map()
      this.#locks.set(lock, tokens)
    }
    const first = tokens.get(token)
    if (first === undefined) {
      tokens.set(token, grant)
      return undefined
    }
    if (areOneGeneration(first, grant)) return undefined
    return {
      rule: 'twice',
      text: `lock ${lock}: token ${token} was granted twice, to ${described(first)} and to ${described(grant)}`,
    }
  }
}

/**
 * Judges grants as clients saw them, in any order: no pair twice, and a grant that was asked for after another one was known
 * has a greater token.
 */
export function judgeTokenGrants(grants: readonly TimedGrant[]): TokenFault[] {
  const pairs = new TokenPairs()
  const asked = grants.toSorted((a, b) => a.askedAt - b.askedAt)
  const known = grants.toSorted((a, b) => a.knownAt - b.knownAt)
  const newest = new Map<string, TimedGrant>()
  const faults: TokenFault[] = []
  let next = 0
  for (const grant of asked) {
    for (let other = known[next]; other !== undefined && other.knownAt < grant.askedAt; other = known[++next]) {
      const before = newest.get(other.lock)
      if (before === undefined || other.token > before.token) newest.set(other.lock, other)
    }
    const before = newest.get(grant.lock)
    const fault = pairs.add(grant) ?? (before === undefined ? undefined : orderOf(before, grant))
    if (fault !== undefined) faults.push(fault)
  }
  return faults
}

function orderOf(earlier: TokenGrant, later: TokenGrant): TokenFault | undefined {
  if (later.token > earlier.token || (later.token === earlier.token && areOneGeneration(earlier, later)))
    return undefined
  return {
    rule: 'order',
    text: `lock ${later.lock}: token ${later.token} was granted to ${described(later)}, after token ${earlier.token} to ${described(earlier)}`,
  }
}

/** A generation ends with its service: a new or restored one knows none of its holds. */
function areOneGeneration(a: TokenGrant, b: TokenGrant): boolean {
  return a.mode === 'shared' && b.mode === 'shared' && a.incarnation === b.incarnation
}

function described({ hold, mode, incarnation }: TokenGrant): string {
  const how = typeof mode === 'string' ? mode : 'permit'
  return `${hold} (${how}${incarnation === undefined ? '' : `, incarnation ${incarnation}`})`
}
