import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { CHROMIUM_ARGS, findChromium } from '../../services/chromium.js'

/** Where screenshots of the last run are kept. */
export const ARTIFACTS = fileURLToPath(new URL('../../../test-artifacts/console/', import.meta.url))

/** Bound for what should happen soon on a busy machine. */
const SOON_MS = 60_000

export type Look = 'light' | 'dark' | 'phone' | 'phone-dark'

const WIDE = { width: 1180, height: 760 }
const PHONE = { width: 360, height: 740 }

/** A real Chromium. Its pages may not say anything that a developer would have to look at. */
export class Visitor {
  readonly complaints: string[] = []
  /** Complaints that a test provokes, such as connections that are refused. */
  expected: RegExp[] = []
  readonly #contexts: BrowserContext[] = []

  private constructor(private readonly browser: Browser) {}

  static async start(): Promise<Visitor> {
    mkdirSync(ARTIFACTS, { recursive: true })
    const executablePath = findChromium()
    if (executablePath === undefined) throw new Error('there is no Chromium')
    return new Visitor(await chromium.launch({ executablePath, args: [...CHROMIUM_ARGS] }))
  }

  async open(url: string, look: Look = 'light'): Promise<Page> {
    const phone = look.startsWith('phone')
    const context = await this.browser.newContext({
      viewport: phone ? PHONE : WIDE,
      deviceScaleFactor: phone ? 2 : 1,
      hasTouch: phone,
      colorScheme: look.endsWith('dark') ? 'dark' : 'light',
    })
    this.#contexts.push(context)
    context.setDefaultTimeout(SOON_MS)
    const page = await context.newPage()
    page.on('pageerror', (error) => this.complaints.push(String(error.stack ?? error)))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.complaints.push(message.text())
    })
    await page.goto(url)
    return page
  }

  /** Unexpected messages. */
  get surprises(): string[] {
    return this.complaints.filter((text) => !this.expected.some((one) => one.test(text)))
  }

  async leave(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close()
  }

  async close(): Promise<void> {
    await this.browser.close()
  }
}

export async function shoot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(ARTIFACTS, `${name}.png`) })
}
