import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'leasehold'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ensureConsole } from '../../scripts/setup.mjs'
import { ChaosCluster } from '../chaos/cluster.js'
import type { ClusterMember } from '../chaos/member.js'
import { describeWith } from '../services/suite.js'
import { shoot, Visitor } from './support/browser.js'
import { findings } from './support/judge.js'

const UNREACHABLE = /ERR_CONNECTION|ERR_EMPTY|ERR_INCOMPLETE|ERR_SOCKET/

describeWith('Chromium', 'the console of a cluster', () => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-console-'))
  const unexpected: string[] = []
  let cluster: ChaosCluster
  let visitor: Visitor

  beforeAll(async () => {
    ensureConsole()
    const onEnd = (member: ClusterMember, code: number | null) => unexpected.push(`${member.name} ended with ${code}`)
    ;[cluster, visitor] = await Promise.all([ChaosCluster.start(folder, 3, onEnd), Visitor.start()])
  })
  afterEach(async () => {
    await visitor.leave()
    const { surprises } = visitor
    visitor.complaints.length = 0
    visitor.expected = []
    expect(surprises).toEqual([])
  })
  afterAll(async () => {
    await visitor?.close()
    await cluster?.close()
    rmSync(folder, { recursive: true, force: true })
    expect(unexpected).toEqual([])
  })

  const card = (page: Page, member: ClusterMember) => page.getByRole('article', { name: `Member ${member.name}` })

  test('shows every member, steals through a follower, and follows when the leader is killed', async () => {
    const leader = await cluster.leader(60_000)
    const [follower, third] = cluster.members.filter((member) => member !== leader) as [ClusterMember, ClusterMember]
    const page = await visitor.open(`${follower.url}/#/cluster`)
    await card(page, leader).getByText('leader', { exact: true }).waitFor()
    for (const member of [follower, third]) await card(page, member).getByText('follower', { exact: true }).waitFor()
    expect(await page.getByTestId('leader').innerText()).toBe(leader.name)
    expect(
      await card(page, third)
        .getByRole('img', { name: /^lag, entries: \d+ now/ })
        .count(),
    ).toBe(1)
    expect(await findings(page)).toEqual([])
    await shoot(page, 'cluster')

    const locks = await connect(cluster.url, { clientName: 'worker', ttl: '30s' })
    const hold = await locks.acquire('cluster/lock')
    await page.goto(`${follower.url}/#/locks/${encodeURIComponent('cluster/lock')}`)
    await page.getByRole('button', { name: 'Steal…' }).click()
    await page.getByLabel('Reason').fill('moved to another host')
    await page.getByRole('button', { name: 'Steal the hold' }).click()
    expect((await hold.lost)?.reason).toBe('stolen')
    const kept = await locks.acquire('cluster/kept')

    // Two readers: one at a follower, one at the leader that is about to go.
    visitor.expected = [UNREACHABLE]
    const bereft = await visitor.open(`${leader.url}/#/locks`)
    await bereft.getByRole('link', { name: 'cluster/kept' }).waitFor()
    await bereft.locator(`.connection[title*="leader ${leader.name}"]`).waitFor()
    await page.goto(`${follower.url}/#/cluster`)
    await leader.kill()
    const next = await cluster.leader(60_000)
    await card(page, leader).getByText('no answer', { exact: true }).waitFor()
    await card(page, next).getByText('leader', { exact: true }).waitFor()
    expect(await page.getByTestId('leader').innerText()).toBe(next.name)
    await page.locator('.grants li', { hasText: `${next.name} took over in term` }).waitFor()
    await shoot(page, 'cluster-dead-leader')

    // The page of the dead member continues with another one: its picture, and its events.
    await bereft.getByRole('status').getByText('Live via').waitFor()
    const after = await locks.acquire('cluster/after')
    await bereft.getByRole('link', { name: 'cluster/after' }).waitFor()
    await shoot(bereft, 'locks-via-another-member')
    await bereft.keyboard.press('5')
    await bereft.locator('.events li', { hasText: 'cluster/after' }).first().waitFor()
    expect(await bereft.locator('.events li[data-kind="gap"]').count(), 'no event is missing').toBe(0)
    await Promise.all([kept.release(), after.release()])
    await locks.close()

    leader.start()
    await card(page, leader).getByText('follower', { exact: true }).waitFor()
  })

  test('under a name that the members do not know, it sees its own member alone, and says so', async () => {
    visitor.expected = [UNREACHABLE, /CORS|ERR_FAILED/]
    const [member, other] = cluster.members as [ClusterMember, ClusterMember]
    const page = await visitor.open(`${member.url.replace('127.0.0.1', 'localhost')}/#/cluster`)
    await page.getByText('only under their own addresses').waitFor()
    await card(page, other).getByText('It has never answered this page.').waitFor()
    expect(await card(page, member).getByText('no answer').count()).toBe(0)
  })

  test('says that a member without a leader knows only the past', async () => {
    visitor.expected = [UNREACHABLE]
    const [first, ...others] = cluster.members as [ClusterMember, ClusterMember, ClusterMember]
    const page = await visitor.open(first.url)
    await page.getByRole('status').getByText('Live').waitFor()
    for (const other of others) await other.kill()
    await page.getByText('This member knows no leader.').waitFor()
    expect(await page.locator('main').getAttribute('class')).toBe('stale')
    await shoot(page, 'no-leader')
    for (const other of others) other.start()
    await page.getByRole('status').getByText('Live').waitFor()
  })
})
