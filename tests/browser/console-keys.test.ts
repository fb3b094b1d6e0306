import { join } from 'node:path'
import { connect } from 'leasehold'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, Workshop } from '../../packages/cli/test/support/cli.js'
import { ensureConsole } from '../../scripts/setup.mjs'
import { describeWith } from '../services/suite.js'
import { shoot, Visitor } from './support/browser.js'
import { findings } from './support/judge.js'

describeWith('Chromium', 'the console of a service with keys', () => {
  const workshop = new Workshop()
  let service: Service
  let visitor: Visitor
  let all: string
  let some: string

  beforeAll(async () => {
    ensureConsole()
    const folder = workshop.folder()
    const keys = join(folder, 'keys.json')
    const create = async (name: string, ...rules: string[]) => {
      const args = [
        'key',
        'create',
        '--keys',
        keys,
        '--name',
        name,
        ...rules.flatMap((rule) => ['--rule', rule]),
        '--json',
      ]
      const done = await workshop.run(args)
      return (JSON.parse(done.stdout) as { key: string }).key
    }
    all = await create('operator', '*:acquire,read,steal')
    some = await create('billing', 'billing:read')
    ;[service, visitor] = await Promise.all([workshop.serve(folder, ['--keys', keys]), Visitor.start()])
  })
  afterAll(async () => {
    await visitor?.close()
    await workshop.close()
  })

  test('asks for a key, keeps it in the tab alone, and says what it may not see', async () => {
    visitor.expected = [/ (401|403) /]
    const locks = await connect(service.url, { apiKey: all, clientName: 'worker' })
    for (const name of ['billing/1', 'payroll/1']) await locks.acquire(name)
    const page = await visitor.open(service.url)
    const input = page.getByLabel('API key')
    await page.getByRole('heading', { name: 'This service requires a key' }).waitFor()
    expect(await findings(page)).toEqual([])
    await shoot(page, 'key')
    await input.fill('lh_nonsense')
    await page.keyboard.press('Enter')
    await page.getByText('The key was rejected').waitFor()

    // A key for a part of the service.
    await input.fill(some)
    await page.keyboard.press('Enter')
    await page.getByText('Not allowed.').waitFor()
    await page.getByRole('searchbox').fill('billing/')
    await page.getByRole('link', { name: 'billing/1' }).waitFor()
    await page.getByText('Not allowed.').waitFor({ state: 'detached' })
    await locks.acquire('billing/2')
    await page.getByRole('link', { name: 'billing/2' }).waitFor()
    await shoot(page, 'key-for-a-part')
    await page.getByRole('link', { name: 'billing/1' }).click()
    await page.getByRole('button', { name: 'Steal…' }).click()
    await page.getByLabel('Reason').fill('may I?')
    await page.getByRole('button', { name: 'Steal the hold' }).click()
    await page.getByRole('dialog').getByText('Not allowed').waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`${service.url}/#/cluster`)
    await page.getByText('This key may not read the cluster').waitFor()

    // Another key, for everything.
    await page.getByRole('button', { name: 'Forget key' }).click()
    await input.fill(all)
    await page.getByRole('button', { name: 'Use this key' }).click()
    await page.getByRole('article', { name: /^Member/ }).waitFor()
    await page.goto(`${service.url}/#/locks`)
    await page.getByRole('link', { name: 'payroll/1' }).waitFor()
    const stored = await page.evaluate(
      'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie, location.href])',
    )
    expect(JSON.parse(stored as string)).toEqual([{ 'leasehold-key': all }, {}, '', `${service.url}/#/locks`])
    await locks.close()
    expect(visitor.surprises).toEqual([])
  })
})
