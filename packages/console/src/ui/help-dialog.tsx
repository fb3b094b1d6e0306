import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { JSX } from 'preact'

export const isHelpShown = signal(false)

const KEYS = [
  ['/', 'search'],
  ['↓ ↑', 'next or previous row (also j and k)'],
  ['Enter', 'open the row'],
  ['Esc', 'leave a dialog, the search, or a lock'],
  ['s', 'steal, on the page of a lock'],
  ['1 … 5', 'locks, sessions, registers, cluster, events'],
  ['t', 'light or dark'],
  ['?', 'this help'],
] as const

function hide(): void {
  isHelpShown.value = false
}

export function HelpDialog(): JSX.Element | null {
  return isHelpShown.value ? <Help /> : null
}

function Help(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onCancel={hide} onClose={hide}>
      <h1 id="help-title">Keyboard</h1>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div class="actions">
        <button type="button" autofocus onClick={hide}>
          Close
        </button>
      </div>
    </dialog>
  )
}
