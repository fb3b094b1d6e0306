import type { JSX } from 'preact'
import { left, span } from '../model/durations.js'
import { now, shownNow } from '../state/health.js'

/** The time since a moment of the monotonic clock. `ongoing`: it keeps counting while the page is stale. */
export function Since({ moment, ongoing = false }: { moment: number; ongoing?: boolean }): JSX.Element {
  return <span class="number">{span((ongoing ? now.value : shownNow.value) - moment)}</span>
}

/** The time until a moment, as text. */
export function Until({ moment, none = 'no end' }: { moment: number | undefined; none?: string }): JSX.Element {
  if (moment === undefined) return <span class="number soft">{none}</span>
  return <span class="number">{left(moment - shownNow.value)}</span>
}

/** The remaining time of a lease: a countdown with a shrinking bar. */
export function Lease({ until, ttlMs }: { until: number | undefined; ttlMs: number | undefined }): JSX.Element {
  if (until === undefined) return <span class="soft">no end</span>
  const rest = Math.max(0, until - shownNow.value)
  const share = ttlMs === undefined ? undefined : Math.min(1, rest / ttlMs)
  const level = share === undefined || share > 0.4 ? 'good' : share > 0.15 ? 'low' : 'out'
  return (
    <span class="lease" data-level={level} data-ttl={share === undefined ? 'none' : undefined}>
      {share !== undefined && (
        <span class="bar" aria-hidden="true">
          <span style={{ transform: `scaleX(${share.toFixed(3)})` }} />
        </span>
      )}
      <span class="number">{left(rest)}</span>
    </span>
  )
}
