import { planOf, runPlan, runScenario, scenarioOf } from '@leasehold/lab'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { TimedAction } from '../../packages/lab/page/src/view-model/actions.js'
import { SCENES, sceneOf } from '../../packages/lab/page/src/view-model/scenes.js'
import { Simulation } from '../../packages/lab/page/src/view-model/simulation.js'
import { Cli } from '../../packages/cli/test/support/cli.js'
import { CHROMIUM_ARGS, findChromium } from '../services/chromium.js'
import { describeWith } from '../services/suite.js'

/** Bound for whatever should happen soon on a busy machine. */
const SOON_MS = 60_000
/** How long a click may take to show, and how many may miss. */
const CLICK_MS = 10_000
const CLICKS_MAX = 8
const POLL_MS = 50

/** The state of the run in the page, once it stands. */
interface Run {
  readonly nowUs: number
  readonly traceHash: string
  readonly actions: TimedAction[]
}

describeWith('Chromium', 'the page of the lab', () => {
  let server: Cli
  let browser: Browser
  let url: string
  let page: Page
  const complaints: string[] = []
  const foreign: string[] = []

  beforeAll(async () => {
    server = new Cli(['lab', 'serve', '--listen', '127.0.0.1:0'])
    await server.printed('the lab is at ')
    url = /http:\S+/.exec(server.stdout)?.[0] as string
    browser = await chromium.launch({ executablePath: findChromium() as string, args: [...CHROMIUM_ARGS] })
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    page.setDefaultTimeout(SOON_MS)
    page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error.stack)))
    page.on('request', (request) => request.url().startsWith(url) || foreign.push(request.url()))
  })
  afterEach(() => {
    expect(complaints.splice(0)).toEqual([])
    expect(foreign.splice(0).filter((one) => !one.startsWith('data:'))).toEqual([])
  })
  afterAll(async () => {
    await browser?.close()
    server?.kill('SIGTERM')
    expect((await server?.finished)?.code).toBe(0)
  })

  /** Another scene, at full speed. */
  async function open(scene: string, seed: number, speed = 10): Promise<void> {
    await page.goto('about:blank')
    await page.goto(`${url}#scene=${scene}&seed=${seed}`)
    await page.selectOption('#speed', String(speed))
    await page.waitForSelector('.picture')
  }

  const box = (who: string) => page.locator(`[data-who="${who}"]`)
  const says = (who: string) => box(who).getAttribute('aria-label')
  const inPage = <T>(code: string): Promise<T> => page.evaluate(code) as Promise<T>
  /** Waits until code of the page gives something; asked from outside, since the page forbids to make code from text. */
  async function until(code: string): Promise<void> {
    const end = performance.now() + SOON_MS
    while (!(await inPage<boolean>(`Boolean(${code})`))) {
      if (performance.now() > end) throw new Error(`waited ${SOON_MS} ms for: ${code}`)
      await page.waitForTimeout(POLL_MS)
    }
  }
  const waits = (who: string, words: RegExp) =>
    until(`${words}.test(document.querySelector('[data-who="${who}"]')?.getAttribute('aria-label') ?? '')`)
  const leader = () => inPage<string>(`document.querySelector('.member.leader').dataset.who`)

  test('every scene begins, and all scenarios of the gallery end as they expect', async () => {
    await open('free', 1)
    expect(await page.title()).toBe('Leasehold lab')
    for (const { id, free } of SCENES) {
      await page.click(`[data-scene="${id}"]`)
      await until(`leaseholdLab.driver.simulation?.scene.id === '${id}'`)
      if (free === true) continue
      await inPage(`leaseholdLab.driver.jump(${(sceneOf(id)?.scenario.until ?? 0) + 1})`)
      await page.waitForSelector('.verdict', { timeout: 120_000 })
      expect([id, await page.textContent('.verdict b')]).toEqual([id, expect.stringMatching(/as expected[:.]/)])
    }
  })

  test('a paused client: its lease passes on, and its late write is refused by one resource and not by the other', async () => {
    await open('free', 4)
    await waits('C1', /believes that it holds/)
    await box('C1').click()
    await page.click('[data-do="pauseInWrite"]')
    await waits('C1', /paused/)
    const token = Number(/token (\d+)/.exec((await box('C1').textContent()) ?? '')?.[1])
    // Another client has the lock by then, and has written.
    await waits('C1', /lease at the service –/)
    await until(
      `Number(/write of C\\d, token (\\d+)/.exec(document.querySelector('[data-who=U]').ariaLabel)?.[1]) > ${token}`,
    )
    await page.click('[data-do="resume"]')
    await page.waitForSelector('.entries .refused')
    await page.waitForSelector('.entries .violation')
    const told = (await page.textContent('.entries')) ?? ''
    expect(told).toMatch(new RegExp(`refuses the write of C1 \\(token ${token}\\)`))
    expect(told).toMatch(/lost-update: C1 has overwritten the acknowledged update of C\d: it had read U/)
    expect(told).not.toMatch(/mark-order|invariant|token-order|exception/)
  })

  test('the leader is killed: another one leads, in a later term', async () => {
    await open('free', 2)
    const first = await leader()
    await page.click('[data-quick="leader"]')
    await waits(first, /not running/)
    await until(`document.querySelector('.member.leader:not([data-who=${first}])')`)
    const second = await leader()
    expect(await says(second)).toMatch(/leader, term [2-9]/)
    // By hand again, and by keyboard: it comes back as a follower.
    await box(first).press('Enter')
    await page.keyboard.press('k')
    await waits(first, /follower, term [2-9]/)
  })

  test('a link is cut by a click, and healed by the keyboard', async () => {
    await open('free', 3)
    const link = page.locator('[data-link="N1|N2"]')
    // The line is a few pixels wide: a click misses it when the layout of the page changes at that moment.
    for (let clicks = 0; (await link.getAttribute('aria-pressed')) !== 'true'; clicks++) {
      expect(clicks).toBeLessThan(CLICKS_MAX)
      await link.locator('.hit').click({ force: true })
      await page.waitForSelector('[data-link="N1|N2"][aria-pressed="true"]', { timeout: CLICK_MS }).catch(() => {})
    }
    await link.press('Enter')
    await page.waitForSelector('[data-link="N1|N2"][aria-pressed="false"]')
  })

  test('a clock that is stepped is seen, and breaks nothing', async () => {
    await open('free', 5)
    const one = await leader()
    await box(one).click()
    await page.keyboard.press('c')
    await page.waitForSelector(`[data-who="${one}"] .tag`)
    expect(await box(one).locator('.tag').textContent()).toBe('clock +15 s')
    await inPage('leaseholdLab.driver.jump(30)')
    await until('leaseholdLab.driver.simulation.at > 30')
    expect(await inPage('leaseholdLab.driver.simulation.viewModel().findings')).toEqual([])
    expect(await says(one)).toMatch(/leader, term 1/)
  })

  test('a scenario, a seed of the explorer, and a run with interference have the same trace as in Node', async () => {
    await open('A1g', 7)
    await inPage('leaseholdLab.driver.jump(21)')
    await page.waitForSelector('.verdict', { timeout: 120_000 })
    const played = await inPage<string>('leaseholdLab.driver.simulation.result.traceHash')
    expect(played).toBe((await runScenario(scenarioOf('A1g') as never, { seed: 7 })).traceHash)
    const { violations, traceHash } = await runPlan(planOf(3, 'swarm'))
    expect(await inPage('leaseholdLab.explore(3)')).toEqual({ violations: violations.length, traceHash })

    await open('free', 9, 1)
    await until('leaseholdLab.driver.simulation && !leaseholdLab.driver.jumps')
    await page.keyboard.press(' ')
    for (const action of [
      `{ do: 'pauseInWrite', who: 'C2' }`,
      `{ do: 'kill', who: 'N2' }`,
      `{ do: 'resume', who: 'C2' }`,
    ]) {
      await inPage(`leaseholdLab.driver.act(${action})`)
      await inPage('leaseholdLab.driver.jump(15)')
      await until('!leaseholdLab.driver.jumps')
    }
    const run = await inPage<Run>(
      `(({ nowUs, traceHash, actions }) => ({ nowUs, traceHash, actions }))(leaseholdLab.driver.simulation)`,
    )
    expect(run.actions).toHaveLength(3)
    const here = await Simulation.open({ scene: sceneOf('free') as never, seed: 9, actions: run.actions })
    await here.advance(run.nowUs)
    expect(here.traceHash).toBe(run.traceHash)
    // The address does it again.
    await page.click('#copy')
    await page.reload()
    await until('leaseholdLab.driver?.simulation && !leaseholdLab.driver.jumps')
    await inPage('leaseholdLab.driver.playing = false')
    await inPage(`leaseholdLab.driver.jump((${run.nowUs} - leaseholdLab.driver.simulation.nowUs) / 1e6)`)
    await until('!leaseholdLab.driver.jumps')
    expect(await inPage('leaseholdLab.driver.simulation.traceHash')).toBe(run.traceHash)
  })
})
