import { covers, type Permission, permissionOf, type Refused } from '@leasehold/core'
import type { StreamPeer } from '@leasehold/replica'

/** Prefixes of names that a client may use, by verb; `''`: everything. A verb that is absent is not allowed at all. */
export interface ClientRights {
  readonly acquire?: readonly string[]
  readonly read?: readonly string[]
  readonly steal?: readonly string[]
  readonly admin?: readonly string[]
}

type Need = Pick<Permission, 'verb' | 'names'> | undefined

/** The lab's clients may steal anything or nothing: what a hold locks makes no difference. */
const namesOf = (): readonly string[] => []

/**
 * What clients may do at the members, as servers decide it over every message: credentials first, then rights. What releases
 * (release, cancel, close) needs nothing, because the session proves it. Without an entry a client may do everything.
 */
export class Access {
  readonly #expired = new Set<string>()
  readonly #rights = new Map<string, ClientRights>()
  /** Refusals so far, as `CLIENT VERB CODE`. */
  readonly refusals = new Map<string, number>()

  /** Its credentials have come to their end. */
  expire(client: string): void {
    this.#expired.add(client)
  }

  /** From now on it may do this and nothing else. */
  allow(client: string, rights: ClientRights): void {
    this.#rights.set(client, rights)
  }

  /** For one connection, of whichever client says hello on it. */
  peer(): Pick<StreamPeer, 'authenticate' | 'authorize' | 'watchEnds'> {
    let client = ''
    const check = (need: Need, what: string): Refused | undefined => {
      const refused = this.#decide(client, need)
      if (refused) {
        const key = `${client} ${what} ${refused.code}`
        this.refusals.set(key, (this.refusals.get(key) ?? 0) + 1)
      }
      return refused
    }
    return {
      authenticate: (hello) => {
        client = hello.client
        return this.#expired.has(client) ? check({ verb: 'read', names: [] }, 'hello') : undefined
      },
      authorize: (message) =>
        check(permissionOf(message, namesOf), message.kind === 'command' ? message.command.kind : message.kind),
      watchEnds: (prefix) => check({ verb: 'read', names: [prefix] }, 'watch'),
    }
  }

  #decide(client: string, need: Need): Refused | undefined {
    if (need === undefined) return undefined
    if (this.#expired.has(client)) return refusal('unauthenticated', `the credentials of ${client} have expired`)
    const rights = this.#rights.get(client)
    if (rights === undefined) return undefined
    const prefixes = rights[need.verb] ?? []
    const allowed = need.names.every((name) => prefixes.some((one) => one === '' || (name !== '' && covers(one, name))))
    if (allowed && prefixes.length > 0) return undefined
    return refusal('forbidden', `${client} may not ${need.verb} ${need.names.join(', ') || 'anything'}`)
  }
}

function refusal(code: Refused['code'], message: string): Refused {
  return { kind: 'refused', code, message }
}
