import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { ClusterPage } from '../pages/cluster-page.js'
import { EventsPage } from '../pages/events-page.js'
import { LockPage } from '../pages/lock-page.js'
import { LocksPage } from '../pages/locks-page.js'
import { RegisterPage } from '../pages/register-page.js'
import { RegistersPage } from '../pages/registers-page.js'
import { SessionsPage } from '../pages/sessions-page.js'
import { notice } from '../state/commands.js'
import { health } from '../state/health.js'
import { snapshot } from '../state/locks.js'
import { place } from '../state/route.js'
import { locked } from '../state/settings.js'
import { Banner } from './banner.js'
import { Header } from './header.js'
import { IntentDialog } from './intent-dialog.js'
import { KeyPanel } from './key-panel.js'
import { HelpDialog } from './help-dialog.js'
import { useKeyboard } from './keyboard.js'

function Page(): JSX.Element {
  const { page, name } = place.value
  switch (page) {
    case 'sessions':
      return <SessionsPage />
    case 'registers':
      return name === '' ? <RegistersPage /> : <RegisterPage name={name} />
    case 'cluster':
      return <ClusterPage />
    case 'events':
      return <EventsPage />
    default:
      return name === '' ? <LocksPage /> : <LockPage name={name} key={name} />
  }
}

/** The whole console. */
export function App(): JSX.Element {
  useKeyboard()
  useSignalEffect(() => {
    const held = snapshot.value?.holds
    const state = health.value === 'live' ? '' : '⚠ '
    document.title = `${state}${held === undefined ? '' : `${held} held · `}Leasehold`
  })
  const isStale = health.value === 'stale' || health.value === 'leaderless'
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Header />
      <Banner />
      <main id="main" tabIndex={-1} class={isStale ? 'stale' : ''} data-health={health.value}>
        {locked.value === undefined ? <Page /> : <KeyPanel problem={locked.value} />}
      </main>
      <IntentDialog />
      <HelpDialog />
      <div class="notice" role="status" data-shown={notice.value !== ''}>
        {notice.value}
      </div>
    </>
  )
}

/** Moves the focus itself, because the fragment of the URL is used for the pages of the console. */
function skip(event: Event): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}
