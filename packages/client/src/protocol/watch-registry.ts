import { type Cursor, EpochChangedError, type EventsMessage, type LeaseholdError, type Welcome } from '@leasehold/core'
import type { Link } from './link.js'
import { StreamWatch, type WatchItem } from './stream-watch.js'

/** Correlations of watches, which have several answers each, lie above all others and are not reused on a connection. */
export const WATCH_CORRELATION_MIN = 2 ** 31
const CORRELATION_MAX = 2 ** 32 - 2

/** The watches of an engine: each is subscribed again on every new connection, after the last event that arrived. */
export class WatchRegistry {
  readonly #link: Pick<Link, 'connected' | 'ensureConnected' | 'send'>
  readonly #watches = new Set<StreamWatch>()
  /** Subscriptions on the present connection. */
  readonly #byCorrelation = new Map<number, StreamWatch>()
  readonly #correlations = new Map<StreamWatch, number>()
  #nextCorrelation = WATCH_CORRELATION_MIN

  constructor(link: Pick<Link, 'connected' | 'ensureConnected' | 'send'>) {
    this.#link = link
  }

  get size(): number {
    return this.#watches.size
  }

  /** The events after `from`, until `signal` aborts. */
  async *items(prefix: string, from: Cursor, signal: AbortSignal): AsyncGenerator<WatchItem, void, void> {
    const watch = new StreamWatch(prefix, from)
    const stop = () => watch.stop()
    signal.addEventListener('abort', stop)
    this.#watches.add(watch)
    this.#link.ensureConnected()
    if (this.#link.connected) this.#subscribe(watch)
    try {
      yield* watch.items()
    } finally {
      signal.removeEventListener('abort', stop)
      this.#watches.delete(watch)
      this.#unsubscribe(watch)
    }
  }

  /** A new connection. `restored`: to another service than before. */
  connected({ cluster, epoch }: Welcome, restored: boolean): void {
    for (const watch of this.#watches) {
      if (restored) watch.fail(new EpochChangedError(`this is another service now: cluster ${cluster}`))
      else watch.connected(epoch)
      this.#subscribe(watch)
    }
  }

  disconnected(): void {
    this.#byCorrelation.clear()
    this.#correlations.clear()
  }

  received(message: EventsMessage): void {
    this.#byCorrelation.get(message.correlation)?.received(message)
  }

  /** The service refused or ended one subscription. */
  refused(correlation: number, error: LeaseholdError): void {
    const watch = this.#byCorrelation.get(correlation)
    if (!watch) return
    this.#byCorrelation.delete(correlation)
    watch.fail(error)
  }

  failAll(error: LeaseholdError): void {
    for (const watch of this.#watches) watch.fail(error)
  }

  stopAll(): void {
    for (const watch of this.#watches) watch.stop()
  }

  #subscribe(watch: StreamWatch): void {
    if (this.#nextCorrelation > CORRELATION_MAX) this.#nextCorrelation = WATCH_CORRELATION_MIN
    const correlation = this.#nextCorrelation++
    this.#byCorrelation.set(correlation, watch)
    this.#correlations.set(watch, correlation)
    this.#link.send(watch.message(correlation))
  }

  #unsubscribe(watch: StreamWatch): void {
    const correlation = this.#correlations.get(watch)
    this.#correlations.delete(watch)
    if (correlation === undefined || !this.#byCorrelation.delete(correlation)) return
    this.#link.send({ kind: 'unwatch', correlation })
  }
}
