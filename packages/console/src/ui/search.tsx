import type { JSX } from 'preact'
import { search } from '../state/route.js'

/** The search box of a page. */
export function Search({ label, hint }: { label: string; hint: string }): JSX.Element {
  return (
    <div class="search">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="7" cy="7" r="4.5" fill="none" stroke="currentColor" stroke-width="1.5" />
        <path d="m10.5 10.5 3.5 3.5" stroke="currentColor" stroke-width="1.5" />
      </svg>
      <input
        id="search"
        type="search"
        aria-label={label}
        placeholder={hint}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        maxLength={512}
        value={search.value}
        onInput={(event) => (search.value = event.currentTarget.value)}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  )
}
