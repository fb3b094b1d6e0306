import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as node from 'leasehold'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, Workshop } from '../../packages/cli/test/support/cli.js'
import * as browserEntry from '../../packages/leasehold/src/browser.js'
import { CHROMIUM_ARGS, findChromium } from '../services/chromium.js'
import { BUNDLES, bundle } from './bundle.mjs'
import { Front } from './front.js'

const here = fileURLToPath(new URL('.', import.meta.url))
const SCENARIO = JSON.stringify(join(here, 'fixtures/scenario.mjs'))
const executablePath = findChromium()

// Code of the page, as text: functions would be changed by the transformation of this file.
const LEASEHOLD = `import('/leasehold.mjs').then(({ createLocks, scenario }) => scenario(() => createLocks(location.origin)))`
const CLIENT = `import('/client.mjs').then(({ createLocksOn, ProtocolEngine, scenario, webSocketConnector }) => {
  const connector = webSocketConnector((url) => new WebSocket(url))
  return scenario(() => createLocksOn(new ProtocolEngine({ urls: [location.origin], connector })))
})`
const WORKER = `import { createLocks, scenario } from './leasehold.mjs'
postMessage(await scenario(() => createLocks(location.origin)))`

/** What this test uses of playwright-core, which is there only where the nested workspace is installed. */
interface Page {
  goto(url: string): Promise<unknown>
  evaluate(code: string): Promise<unknown>
  on(event: 'pageerror', listener: (error: Error) => void): void
}
interface Browser {
  newPage(): Promise<Page>
  version(): string
  close(): Promise<void>
}
interface Playwright {
  chromium: { launch(options: { executablePath: string; args: readonly string[] }): Promise<Browser> }
}

describe('bundles for browsers', () => {
  test.each(Object.entries(BUNDLES))(
    '%s: has no module of Node and no `ws`, and its size is that of docs/platforms.md',
    async (what, code) => {
      const { modules, text, gzipBytes } = await bundle(code)
      const foreign = modules.filter((id) => /(__vite-browser-external|node_modules\/|node:)/.test(id))
      expect(foreign).toEqual([])
      expect(text).not.toMatch(/["'`]node:/)
      const page = readFileSync(join(here, '../../docs/platforms.md'), 'utf8')
      const row = page.split('\n').find((line) => line.includes(`| ${what} |`))
      const said = Number(/\| ([\d.]+) kB \|$/.exec(row ?? '')?.[1])
      const share = gzipBytes / 1000 / said
      expect(share, `docs/platforms.md says ${said} kB, it is ${gzipBytes / 1000}`).toBeGreaterThan(0.95)
      expect(share, `docs/platforms.md says ${said} kB, it is ${gzipBytes / 1000}`).toBeLessThan(1.05)
    },
  )

  test('the entry for browsers has the names of the entry for Node, and refuses what needs Node', () => {
    expect(Object.keys(browserEntry).sort()).toEqual(Object.keys(node).sort())
    for (const url of ['file:./data', 'memory:x', 'etcd://127.0.0.1']) {
      expect(() => browserEntry.createLocks(url)).toThrow(/in a browser/)
    }
    return expect(browserEntry.connectApproximate()).rejects.toThrow(/in a browser/)
  })
})

describe.skipIf(executablePath === undefined)('Chromium', () => {
  const workshop = new Workshop()
  let service: Service
  let chromium: Browser
  let page: Page
  let front: Front
  const errors: Error[] = []

  beforeAll(async () => {
    const name = 'playwright-core'
    const [{ chromium: driver }, served] = await Promise.all([
      import(name) as Promise<Playwright>,
      workshop.serve(workshop.folder()),
    ])
    service = served
    chromium = await driver.launch({ executablePath: executablePath as string, args: CHROMIUM_ARGS })
    page = await chromium.newPage()
    page.on('pageerror', (error) => errors.push(error))
    const entry = async (code: string) => (await bundle(`${code}; export { scenario } from ${SCENARIO}`)).text
    front = await Front.open(
      {
        '/': ['text/html', '<!doctype html><title>test</title>'],
        '/leasehold.mjs': ['text/javascript', await entry("export { createLocks } from 'leasehold'")],
        '/client.mjs': ['text/javascript', await entry("export * from '@leasehold/client'")],
        '/worker.mjs': ['text/javascript', WORKER],
      },
      new URL(service.url),
    )
    await page.goto(front.url)
  })
  afterAll(async () => {
    await chromium?.close()
    await front?.close()
    await workshop.close()
    expect(errors).toEqual([])
  })

  const HAPPENED = {
    token: 'bigint',
    busy: null,
    released: true,
    grew: true,
    lost: 'lost',
    asserted: 'stolen',
    byDeadline: 'deadline',
    value: 'held',
  }

  test('leasehold holds, releases and loses locks in a page', async () => {
    expect(await page.evaluate(LEASEHOLD)).toEqual(HAPPENED)
  })

  test('@leasehold/client alone does, too', async () => {
    expect(await page.evaluate(CLIENT)).toEqual(HAPPENED)
  })

  test('so it does in a worker of a page', async () => {
    const happened = await page.evaluate(`new Promise((resolve, reject) => {
      const worker = new Worker('/worker.mjs', { type: 'module' })
      worker.onmessage = ({ data }) => resolve(data)
      worker.onerror = ({ message }) => reject(new Error(message))
    })`)
    expect(happened).toEqual(HAPPENED)
  })
})
