import { useEffect } from 'preact/hooks'
import { intent } from '../state/commands.js'
import { go, hrefOf, PAGES, place, search } from '../state/route.js'
import { toggleTheme } from '../state/settings.js'
import { helpShown } from './help.js'

/** By then the page that was gone to is drawn. */
const DRAWN_MS = 50

/** The keys of the whole console. */
export function useKeyboard(): void {
  useEffect(() => {
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
  // Dialogs have their own keys: those of the browser.
  if (intent.value !== undefined || helpShown.value) return
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement
  const isOurs = typing ? onTypingKey(event) : onFreeKey(event)
  if (isOurs) event.preventDefault()
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
  else if (key === '?') helpShown.value = true
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

/** From row to row; upwards from the first one into the search. */
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
    setTimeout(() => focusRow(hrefOf(page, name)), DRAWN_MS)
  } else if (search.value !== '') search.value = ''
  else return false
  return true
}

/** The list goes on where it was left. */
function focusRow(href: string): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  rows.find((row) => row.getAttribute('href') === href)?.focus()
}

function press(what: string): boolean {
  const button = document.querySelector<HTMLElement>(`[data-press="${what}"]`)
  button?.click()
  return button !== null
}
