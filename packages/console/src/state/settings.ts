import { effect, signal } from '@preact/signals'
import type { Problem } from '../api/types.js'

/** A stored setting. If the browser denies access to the storage, it lasts as long as the page. */
function storedSetting(storage: () => Storage, name: string): { get(): string; set(value: string): void } {
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
        // Without storage, the setting is lost when the page is closed.
      }
    },
  }
}

// The key is stored per tab, where neither another tab nor the next user of the browser can read it.
const storedKey = storedSetting(() => sessionStorage, 'leasehold-key')
const storedTheme = storedSetting(() => localStorage, 'leasehold-theme')
const storedActor = storedSetting(() => localStorage, 'leasehold-actor')

export const apiKey = signal(storedKey.get())
/** Set while the service requires credentials, and there are none or invalid ones. */
export const locked = signal<Problem | undefined>(undefined)

/** Handles the rejection of a key, unless another key has been set since. */
export function onKeyRejected(key: string, problem: Problem): void {
  if (key === apiKey.value) locked.value = problem
}

export const actor = signal(storedActor.get())
/** '' uses the theme of the system. */
export const theme = signal<'' | 'light' | 'dark'>(storedTheme.get() as '' | 'light' | 'dark')

export function keepSettings(): void {
  effect(() => storedKey.set(apiKey.value))
  effect(() => storedActor.set(actor.value))
  effect(() => {
    storedTheme.set(theme.value)
    if (theme.value === '') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme.value
  })
}

export function toggleTheme(): void {
  const dark = theme.value === 'dark' || (theme.value === '' && matchMedia('(prefers-color-scheme: dark)').matches)
  theme.value = dark ? 'light' : 'dark'
}
