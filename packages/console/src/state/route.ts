import { signal } from '@preact/signals'

export const PAGES = ['locks', 'sessions', 'registers', 'cluster', 'events'] as const
export type PageName = (typeof PAGES)[number]

export interface Place {
  readonly page: PageName
  /** Name of the shown lock or register; '' for the list. */
  readonly name: string
}

/** The fragment of the URL for a place. Names are arbitrary text, so they are percent-encoded. */
export function hrefOf(page: PageName, name = ''): string {
  return `#/${page}${name === '' ? '' : `/${encodeURIComponent(name)}`}`
}

export function placeOf(hash: string): Place {
  const [, page = '', ...rest] = hash.replace(/^#/, '').split('/')
  const known = PAGES.find((one) => one === page) ?? 'locks'
  try {
    return { page: known, name: decodeURIComponent(rest.join('/')) }
  } catch {
    return { page: known, name: '' }
  }
}

export const place = signal<Place>(placeOf(location.hash))
export const search = signal('')

export function followAddress(): void {
  addEventListener('hashchange', () => {
    const next = placeOf(location.hash)
    if (next.page !== place.value.page) search.value = ''
    place.value = next
    scrollTo(0, 0)
  })
}

export function go(page: PageName, name = ''): void {
  location.hash = hrefOf(page, name)
}
