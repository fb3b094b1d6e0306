import type { JSX } from 'preact'
import { left } from '../model/durations.js'
import { failure, health, now, refused, updatedAt } from '../state/health.js'
import { retryNow } from '../state/start.js'
import { Since } from './times.js'

/** Warns when the shown state is stale or incomplete. */
export function Banner(): JSX.Element | null {
  const lost = failure.value
  if (health.value === 'leaderless') {
    return (
      <div class="banner" role="alert">
        <p>
          <strong>This member knows no leader.</strong> Without one, nothing is granted, released or expired; the page
          shows its last state.
        </p>
      </div>
    )
  }
  if (lost !== undefined && (health.value === 'stale' || lost.failures > 1)) {
    const never = updatedAt.value === undefined
    return (
      <div class="banner">
        <p>
          <strong role="alert">{never ? 'The service does not respond.' : 'Stale: the connection is lost.'}</strong>{' '}
          {never ? 'Is it running?' : 'The state may have changed since.'} <span class="soft">({lost.why})</span>
        </p>
        <p class="number" aria-hidden="true">
          {updatedAt.value !== undefined && (
            <>
              <Since moment={updatedAt.value} ongoing /> old ·{' '}
            </>
          )}
          {lost.nextAttempt > now.value ? `next attempt in ${left(lost.nextAttempt - now.value)}` : 'retrying…'}
        </p>
        <button type="button" onClick={retryNow}>
          Retry now
        </button>
      </div>
    )
  }
  const problem = refused.value
  if (problem === undefined) return null
  return (
    <div class="banner" role="alert" data-kind="refused">
      <p>
        <strong>{problem.status === 403 ? 'Not allowed.' : problem.title}</strong> {problem.detail}
        {problem.status === 403 && (
          <span class="block">
            Search the locks for a path that this key may read, such as <code>billing/</code>, or use another key.
          </span>
        )}
      </p>
    </div>
  )
}
