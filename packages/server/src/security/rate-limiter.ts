import { LimitError } from '@leasehold/core'

/** What one client may do; undefined: as much as the service can. */
export interface ClientLimits {
  /** Requests in a second, without renewals and releases; twice as many in one burst. */
  readonly requestsPerSecond?: number | undefined
  /** Renewals in a second: a budget of their own, so that work never costs a client its holds. */
  readonly renewalsPerSecond?: number | undefined
  /** Sessions at a time. */
  readonly sessions?: number | undefined
  /** Acquires that wait at a time. */
  readonly waiters?: number | undefined
}

/** Clients whose budgets are remembered; the one that was idle for longest is forgotten first, with a full budget. */
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

/** Token buckets by client. A request over the limit is refused at once: it neither waits nor takes effect. */
export class RateLimiter {
  readonly #clients = new Map<string, Budget>()

  constructor(
    private readonly limits: ClientLimits,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** @throws LimitError */
  spend(client: string, kind: 'request' | 'renewal'): void {
    const perSecond = kind === 'request' ? this.limits.requestsPerSecond : this.limits.renewalsPerSecond
    if (perSecond === undefined) return
    const budget = this.#budgetOf(client)
    const bucket = kind === 'request' ? budget.requests : budget.renewals
    const now = this.nowMs()
    bucket.left = Math.min(perSecond * BURST, bucket.left + ((now - bucket.at) / 1000) * perSecond)
    bucket.at = now
    if (bucket.left < 1) {
      throw new LimitError(`more than ${perSecond} ${kind}s per second`, {
        hint: 'this client has a limit: ask less often',
      })
    }
    bucket.left--
  }

  #budgetOf(client: string): Budget {
    const known = this.#clients.get(client)
    this.#clients.delete(client)
    const { requestsPerSecond = 0, renewalsPerSecond = 0 } = this.limits
    const at = this.nowMs()
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
