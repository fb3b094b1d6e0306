import type { JSX } from 'preact'
import { left } from '../model/durations.js'
import { failure, health, now, refused, toldAt } from '../state/health.js'
import { tryNow } from '../state/start.js'
import { Since } from './times.js'

/** What the reader has to know before reading on. */
export function Banner(): JSX.Element | null {
  const lost = failure.value
  if (health.value === 'leaderless') {
    return (
      <div class="banner" role="alert">
        <p>
          <strong>This member knows no leader.</strong> Without one nothing is granted, released or expired; what you
          see is its last state.
        </p>
      </div>
    )
  }
  if (lost !== undefined && (health.value === 'stale' || lost.failures > 1)) {
    const never = toldAt.value === undefined
    return (
      <div class="banner">
        <p>
          <strong role="alert">{never ? 'The service does not answer.' : 'Stale: the connection is lost.'}</strong>{' '}
          {never ? 'Is it running?' : 'What you see may have changed since.'} <span class="soft">({lost.why})</span>
        </p>
        <p class="number" aria-hidden="true">
          {toldAt.value !== undefined && (
            <>
              <Since moment={toldAt.value} ongoing /> old ·{' '}
            </>
          )}
          {lost.nextTry > now.value ? `next try in ${left(lost.nextTry - now.value)}` : 'trying…'}
        </p>
        <button type="button" onClick={tryNow}>
          Try now
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
            Type a path that this key may read, such as <code>billing/</code>, into the search of the locks; or use
            another key.
          </span>
        )}
      </p>
    </div>
  )
}
