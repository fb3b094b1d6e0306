import { effect, signal } from '@preact/signals'
import type { Problem } from '../api/types.js'

/** Where something is kept; a browser may refuse it, and then it lasts as long as the page. */
function kept(storage: () => Storage, name: string): { get(): string; set(value: string): void } {
  return {
    get() {
      try {
        return storage().getItem(name) ?? ''
      } catch {
        return ''
      }
    },
    set(value) {
      try {
        if (value === '') storage().removeItem(name)
        else storage().setItem(name, value)
      } catch {
        // Without storage the choice is forgotten with the page.
      }
    },
  }
}

// The key goes with the tab: it is never written where another tab, or tomorrow's user, finds it.
const keptKey = kept(() => sessionStorage, 'leasehold-key')
const keptTheme = kept(() => localStorage, 'leasehold-theme')
const keptActor = kept(() => localStorage, 'leasehold-actor')

export const apiKey = signal(keptKey.get())
/** Credentials are asked for, and there are none, or wrong ones. */
export const locked = signal<Problem | undefined>(undefined)

/** A key was refused. That is of no interest any more when another one was given meanwhile. */
export function keyRefused(key: string, problem: Problem): void {
  if (key === apiKey.value) locked.value = problem
}

export const actor = signal(keptActor.get())
/** '' follows the system. */
export const theme = signal<'' | 'light' | 'dark'>(keptTheme.get() as '' | 'light' | 'dark')

export function keepSettings(): void {
  effect(() => keptKey.set(apiKey.value))
  effect(() => keptActor.set(actor.value))
  effect(() => {
    keptTheme.set(theme.value)
    if (theme.value === '') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme.value
  })
}

export function toggleTheme(): void {
  const dark = theme.value === 'dark' || (theme.value === '' && matchMedia('(prefers-color-scheme: dark)').matches)
  theme.value = dark ? 'light' : 'dark'
}
