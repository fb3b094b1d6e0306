import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'

/* Code for the page goes there as text: as a function it would be changed on the way by the transformation of the tests. */

const IN_PAGE = readFileSync(new URL('in-page.js', import.meta.url), 'utf8')

/** What can be seen to be wrong with a page without looking at it. */
export async function findings(page: Page): Promise<string[]> {
  return (await page.evaluate(`(() => { ${IN_PAGE}; return findings() })()`)) as string[]
}

export async function background(page: Page): Promise<string> {
  return (await page.evaluate('getComputedStyle(document.body).backgroundColor')) as string
}

/** The element that has the focus: its text, and whether that can be seen. */
export async function focused(page: Page): Promise<{ text: string; outline: string }> {
  return (await page.evaluate(
    '({ text: document.activeElement.textContent, outline: getComputedStyle(document.activeElement).outlineStyle })',
  )) as { text: string; outline: string }
}
