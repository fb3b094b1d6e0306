import type { JSX } from 'preact'
import { asked, base, leader } from '../state/cluster.js'
import { health, toldAt } from '../state/health.js'
import { picture } from '../state/locks.js'
import { hrefOf, type PageName, PAGES, place } from '../state/route.js'
import { apiKey, locked, theme, toggleTheme } from '../state/settings.js'
import { takeKey } from '../state/start.js'
import { helpShown } from './help.js'
import { Since } from './times.js'

const TITLES: Readonly<Record<PageName, string>> = {
  locks: 'Locks',
  sessions: 'Sessions',
  registers: 'Registers',
  cluster: 'Cluster',
  events: 'Events',
}

/** Name, pages, and how the connection is. */
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
          <button type="button" class="quiet" onClick={() => takeKey('')}>
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
  helpShown.value = true
}

function Count({ page }: { page: PageName }): JSX.Element | null {
  const known = picture.value
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

const WORDS = {
  locked: 'Key needed',
  connecting: 'Connecting',
  live: 'Live',
  stale: 'Stale',
  leaderless: 'No leader',
} as const

/** Whether what is shown is what is. */
function Connection(): JSX.Element {
  const state = locked.value === undefined ? health.value : 'locked'
  const via = state === 'live' && base.value !== '' && asked.value !== undefined ? ` via ${asked.value.name}` : ''
  const led = leader.value === undefined ? '' : `, leader ${leader.value.member}`
  return (
    <p class="connection" data-state={state} title={state === 'live' ? `asked once a second${via}${led}` : undefined}>
      <span class="dot" aria-hidden="true" />
      <span role="status">
        {WORDS[state]}
        {via}
      </span>
      {state === 'stale' && toldAt.value !== undefined && (
        <span class="soft">
          <Since moment={toldAt.value} ongoing />
        </span>
      )}
    </p>
  )
}
