import type { JSX } from 'preact'
import type { Entry } from '../view-model/journal.js'

/** Entries that are shown. */
const SHOWN = 120

/** What has happened, newest first. */
export function Log({ entries }: { readonly entries: readonly Entry[] }): JSX.Element {
  return (
    <section class="log" aria-label="what happens">
      <h2>What happens</h2>
      <div class="entries" role="log" aria-live="off" tabindex={0}>
        <ol>
          {entries
            .slice(-SHOWN)
            .reverse()
            .map(({ number, at, who, text, tone }) => (
              <li key={number} class={tone}>
                <time>{at.toFixed(2)}</time>
                <b class={/^C\d$/.test(who) ? `c${who.slice(1)}` : ''}>{who}</b>
                <span>{text}</span>
              </li>
            ))}
        </ol>
      </div>
    </section>
  )
}

/** Announces the last important entry to screen readers. */
export function Announcer({ entries }: { readonly entries: readonly Entry[] }): JSX.Element {
  const last = entries.filter(({ tone }) => tone !== 'plain').at(-1)
  return (
    <p class="unseen" aria-live="polite">
      {last === undefined ? '' : `${last.who} ${last.text}`}
    </p>
  )
}
