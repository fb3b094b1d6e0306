import type { Begun, Ended } from '@leasehold/client'
import { HoldLostError, LeaseholdError, StaleTokenError } from '@leasehold/core'
import type { Meter } from '@opentelemetry/api'

export interface Instruments {
  begin(begun: Begun): (ended: Ended) => void
}

/** Bucket boundaries of the histograms, in seconds: from a local round trip to a long wait. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800]

/** Creates the metrics of `instrument`. Their attributes have few values: outcomes and reasons, never lock names. */
export function instruments(meter: Meter): Instruments {
  const histogram = (name: string, description: string) =>
    meter.createHistogram(name, { unit: 's', description, advice: { explicitBucketBoundaries: SECONDS } })
  const acquire = histogram('leasehold.acquire.duration', 'from the call of an acquire to its hold or error')
  const wait = histogram('leasehold.wait.duration', 'from the request of a lock to its grant or refusal')
  const hold = histogram('leasehold.hold.duration', 'from the grant to the end of a hold')
  const renewal = histogram('leasehold.renewal.duration', 'round trip of a renewal')
  const lag = histogram('leasehold.renewal.lag', 'how much later than planned a renewal is sent')
  const release = histogram('leasehold.release.duration', 'from a release to its confirmation')
  const guard = histogram('leasehold.guard.duration', 'of guarded effects')
  const holds = meter.createUpDownCounter('leasehold.holds', { description: 'holds of this process' })
  const lost = meter.createCounter('leasehold.holds.lost', { description: 'holds that ended without their release' })
  const stale = meter.createCounter('leasehold.guard.stale', { description: 'stale effects that a guard has refused' })
  const overlaps = meter.createCounter('leasehold.belief.overlaps', {
    description: 'holds that were believed here when they had ended already',
  })
  const overlap = histogram('leasehold.belief.overlap', 'how long at most such a hold was believed')

  return {
    begin(begun) {
      const startedAt = performance.now()
      const seconds = () => (performance.now() - startedAt) / 1000
      if (begun.kind === 'hold') holds.add(1)
      if (begun.kind === 'renew') lag.record(begun.lagMs / 1000)
      return (ended) => {
        const attributes = { outcome: outcomeOf(ended) }
        switch (begun.kind) {
          case 'acquire':
            return acquire.record(seconds(), attributes)
          case 'wait':
            return wait.record(seconds(), attributes)
          case 'renew':
            return renewal.record(seconds(), attributes)
          case 'release':
            return release.record(seconds(), attributes)
          case 'guard':
            guard.record(seconds(), attributes)
            if (ended.error instanceof StaleTokenError) {
              stale.add(1)
              // The resource has seen a later holder, while this one still believes that it holds the lock.
              if ((begun.hold as { state?: unknown }).state === 'held') overlaps.add(1, { noticed_by: 'guard' })
            }
            return undefined
          case 'hold':
            holds.add(-1)
            hold.record(seconds(), attributes)
            if (ended.error instanceof HoldLostError) lost.add(1, { reason: ended.error.reason })
            if (ended.overlapMaxMs !== undefined) {
              overlaps.add(1, { noticed_by: 'service' })
              overlap.record(ended.overlapMaxMs / 1000)
            }
            return undefined
        }
      }
    },
  }
}

function outcomeOf({ error }: Ended): string {
  if (error === undefined) return 'ok'
  return error instanceof LeaseholdError ? error.code : 'error'
}
