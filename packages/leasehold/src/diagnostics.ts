import { type Channel, channel } from 'node:diagnostics_channel'
import { addObserver, type Begun, type ObservedKind } from '@leasehold/client'

/** The names of the channels: `leasehold:KIND:start` and `leasehold:KIND:end`. */
export const DIAGNOSTIC_KINDS: readonly ObservedKind[] = ['acquire', 'wait', 'hold', 'renew', 'release', 'guard']

interface Pair {
  readonly start: Channel
  readonly end: Channel
}

let published = false

/**
 * Publishes the operations of clients and guards on Node's `diagnostics_channel`. Builds no message for a channel without
 * subscribers. The message is one object, published at the start and again, with the outcome added, at the end.
 * Called by every `createLocks`; calls after the first have no effect.
 */
export function publishDiagnostics(): void {
  if (published) return
  published = true
  const pair = (kind: ObservedKind): Pair => ({
    start: channel(`leasehold:${kind}:start`),
    end: channel(`leasehold:${kind}:end`),
  })
  const pairs = Object.fromEntries(DIAGNOSTIC_KINDS.map((kind) => [kind, pair(kind)])) as Record<ObservedKind, Pair>
  addObserver({
    wants: (kind) => pairs[kind].start.hasSubscribers || pairs[kind].end.hasSubscribers,
    begin(begun: Begun) {
      const { start, end } = pairs[begun.kind]
      const message = { ...begun }
      start.publish(message)
      return (ended) => end.publish(Object.assign(message, ended))
    },
  })
}
