import { useEffect } from 'preact/hooks'
import { intent } from '../state/commands.js'
import { go, hrefOf, PAGES, place, search } from '../state/route.js'
import { toggleTheme } from '../state/settings.js'
import { isHelpShown } from './help-dialog.js'

/** Long enough for the next page to be rendered. */
const RENDER_MS = 50

/** Handles the keyboard shortcuts of the console. */
export function useKeyboard(): void {
  useEffect(() => {
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
  // Dialogs use the keys of the browser.
  if (intent.value !== undefined || isHelpShown.value) return
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement
  const isHandled = typing ? onTypingKey(event) : onFreeKey(event)
  if (isHandled) event.preventDefault()
}

function onTypingKey({ key, target }: KeyboardEvent): boolean {
  const input = target as HTMLElement
  if (input.id !== 'search') return false
  if (key === 'ArrowDown' || key === 'Enter') return move(1)
  if (key !== 'Escape') return false
  if (search.value === '') input.blur()
  search.value = ''
  return true
}

function onFreeKey({ key }: KeyboardEvent): boolean {
  const page = PAGES[Number(key) - 1]
  if (page !== undefined) go(page)
  else if (key === '/') focusSearch()
  else if (key === 'ArrowDown' || key === 'j') return move(1)
  else if (key === 'ArrowUp' || key === 'k') return move(-1)
  else if (key === 'Escape') return back()
  else if (key === 's') return press('steal')
  else if (key === 't') toggleTheme()
  else if (key === '?') isHelpShown.value = true
  else return false
  return true
}

function focusSearch(): void {
  const input = document.getElementById('search')
  if (input instanceof HTMLInputElement) {
    input.focus()
    input.select()
  }
}

/** Moves the focus from row to row, and from the first row up to the search. */
function move(step: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  if (rows.length === 0) return false
  const at = rows.indexOf(document.activeElement as HTMLElement)
  if (at === 0 && step === -1) focusSearch()
  else rows[at < 0 ? (step === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, at + step)]?.focus()
  return true
}

function back(): boolean {
  const { page, name } = place.value
  if (name !== '') {
    go(page)
    setTimeout(() => focusRow(hrefOf(page, name)), RENDER_MS)
  } else if (search.value !== '') search.value = ''
  else return false
  return true
}

/** Restores the focus to the row of the page that was left. */
function focusRow(href: string): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  rows.find((row) => row.getAttribute('href') === href)?.focus()
}

function press(what: string): boolean {
  const button = document.querySelector<HTMLElement>(`[data-press="${what}"]`)
  button?.click()
  return button !== null
}
