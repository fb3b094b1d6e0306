import { LimitError } from '@leasehold/core'
import type { ClientLimits } from './client-limits.js'

/** Clients whose budgets are kept; the least recently used one is evicted first. */
const CLIENTS_MAX = 10_000
const BURST = 2

interface Bucket {
  left: number
  at: number
}

interface Budget {
  readonly requests: Bucket
  readonly renewals: Bucket
}

/** Token buckets per client. A request over the limit is rejected immediately: it neither waits nor takes effect. */
export class RateLimiter {
  readonly #limits: ClientLimits
  readonly #nowMs: () => number
  readonly #clients = new Map<string, Budget>()

  constructor(limits: ClientLimits, nowMs: () => number = () => performance.now()) {
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** @throws LimitError */
  spend(client: string, kind: 'request' | 'renewal'): void {
    const perSecond = kind === 'request' ? this.#limits.requestsPerSecond : this.#limits.renewalsPerSecond
    if (perSecond === undefined) return
    const budget = this.#budgetOf(client)
    const bucket = kind === 'request' ? budget.requests : budget.renewals
    const now = this.#nowMs()
    bucket.left = Math.min(perSecond * BURST, bucket.left + ((now - bucket.at) / 1000) * perSecond)
    bucket.at = now
    if (bucket.left < 1) {
      throw new LimitError(`more than ${perSecond} ${kind}s per second`, {
        hint: 'this client has a rate limit: send fewer requests',
      })
    }
    bucket.left--
  }

  #budgetOf(client: string): Budget {
    const known = this.#clients.get(client)
    this.#clients.delete(client)
    const { requestsPerSecond = 0, renewalsPerSecond = 0 } = this.#limits
    const at = this.#nowMs()
    const budget = known ?? {
      requests: { left: requestsPerSecond * BURST, at },
      renewals: { left: renewalsPerSecond * BURST, at },
    }
    if (this.#clients.size >= CLIENTS_MAX) {
      const [idlest] = this.#clients.keys()
      if (idlest !== undefined) this.#clients.delete(idlest)
    }
    this.#clients.set(client, budget)
    return budget
  }
}
