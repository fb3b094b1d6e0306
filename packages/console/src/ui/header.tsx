import type { JSX } from 'preact'
import { queriedMember, base, leader } from '../state/cluster.js'
import { health, updatedAt } from '../state/health.js'
import { snapshot } from '../state/locks.js'
import { hrefOf, type PageName, PAGES, place } from '../state/route.js'
import { apiKey, locked, theme, toggleTheme } from '../state/settings.js'
import { setApiKey } from '../state/start.js'
import { isHelpShown } from './help-dialog.js'
import { Since } from './times.js'

const TITLES: Readonly<Record<PageName, string>> = {
  locks: 'Locks',
  sessions: 'Sessions',
  registers: 'Registers',
  cluster: 'Cluster',
  events: 'Events',
}

/** The navigation, and the state of the connection. */
export function Header(): JSX.Element {
  return (
    <header class="top">
      <a class="brand" href={hrefOf('locks')}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M5 7V5.2a3 3 0 0 1 6 0V7" fill="none" stroke="currentColor" stroke-width="1.5" />
          <rect x="3.5" y="7" width="9" height="6.5" rx="1.5" fill="currentColor" />
        </svg>
        Leasehold
      </a>
      <nav aria-label="Pages">
        {PAGES.map((page, i) => (
          <a
            key={page}
            href={hrefOf(page)}
            aria-current={place.value.page === page ? 'page' : undefined}
            title={`${TITLES[page]} (${i + 1})`}
          >
            {TITLES[page]}
            <Count page={page} />
          </a>
        ))}
      </nav>
      <Connection />
      <div class="tools">
        {apiKey.value !== '' && (
          <button type="button" class="quiet" onClick={() => setApiKey('')}>
            Forget key
          </button>
        )}
        <button type="button" class="icon" aria-label="Keyboard shortcuts" title="Keyboard (?)" onClick={showHelp}>
          ?
        </button>
        <button
          type="button"
          class="icon"
          aria-label="Switch between light and dark"
          title="Light or dark (t)"
          data-theme-now={theme.value || 'system'}
          onClick={toggleTheme}
        >
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5" />
            <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
          </svg>
        </button>
      </div>
    </header>
  )
}

function showHelp(): void {
  isHelpShown.value = true
}

function Count({ page }: { page: PageName }): JSX.Element | null {
  const known = snapshot.value
  if (known === undefined || (page !== 'locks' && page !== 'sessions')) return null
  if (place.value.page === 'locks' && (place.value.name !== '' || page === 'sessions')) return null
  const value = page === 'locks' ? known.locks.filter((lock) => lock.holds.length > 0).length : known.sessions.length
  return (
    <span class="count">
      {value}
      {known.partial ? '+' : ''}
    </span>
  )
}

const STATE_TEXTS = {
  locked: 'Key needed',
  connecting: 'Connecting',
  live: 'Live',
  stale: 'Stale',
  leaderless: 'No leader',
} as const

/** The state of the connection, and thus whether the page is up to date. */
function Connection(): JSX.Element {
  const state = locked.value === undefined ? health.value : 'locked'
  const via =
    state === 'live' && base.value !== '' && queriedMember.value !== undefined ? ` via ${queriedMember.value.name}` : ''
  const led = leader.value === undefined ? '' : `, leader ${leader.value.member}`
  return (
    <p class="connection" data-state={state} title={state === 'live' ? `polled once a second${via}${led}` : undefined}>
      <span class="dot" aria-hidden="true" />
      <span role="status">
        {STATE_TEXTS[state]}
        {via}
      </span>
      {state === 'stale' && updatedAt.value !== undefined && (
        <span class="soft">
          <Since moment={updatedAt.value} ongoing />
        </span>
      )}
    </p>
  )
}
