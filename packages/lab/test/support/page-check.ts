import { expect } from 'vitest'
import { htmlPage } from '../../src/render/index.js'
import type { ScenarioResult } from '../../src/scenarios/index.js'

/** Expects a page that is well-formed, loads nothing, and shows each lease once. */
export function expectWellFormedPage(result: ScenarioResult): void {
  const page = htmlPage(result)
  expect(page).toContain('<table class="diary"><tr')
  expect(wrongLeases(result)).toEqual([])
  expect(page).not.toMatch(/<script|<link|@import|url\((?!#)|<img/)
  expect(unmatchedTags(page)).toEqual([])
  expect(page).not.toMatch(/NaN|undefined|Infinity/)
}

/** Leases that begin twice, or end without a beginning. */
function wrongLeases({ timeline }: ScenarioResult): string[] {
  const open = new Set<string>()
  const wrong: string[] = []
  for (const moment of timeline) {
    if (moment.kind === 'lease-begin') {
      if (open.has(moment.id)) wrong.push(`${moment.id} begins twice`)
      open.add(moment.id)
    }
    if (moment.kind === 'lease-end' && !open.delete(moment.id)) wrong.push(`${moment.id} ends, and has not begun`)
  }
  return wrong
}

/** Tags without a partner. */
function unmatchedTags(page: string): string[] {
  const open: string[] = []
  const found: string[] = []
  for (const [, close, name, rest] of page.matchAll(/<(\/?)([a-z0-9]+)((?:"[^"]*"|[^>"])*)>/g)) {
    if (name === undefined || ['meta', 'br'].includes(name) || rest?.endsWith('/')) continue
    if (close !== '/') open.push(name)
    else if (open.pop() !== name) found.push(`</${name}>`)
  }
  return [...found, ...open]
}
