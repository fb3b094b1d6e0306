import { afterAll, beforeAll, expect, it } from 'vitest'
import { Cli, type Finished } from '../../packages/cli/test/support/cli.js'
import { blocksOf, runBlock } from '../services/doc-blocks.js'
import { startEtcd } from '../services/etcd.js'
import type { Service } from '../services/process.js'
import { describeWith } from '../services/suite.js'

describeWith('etcd', 'the command line on etcd', () => {
  let service: Service
  beforeAll(async () => {
    service = await startEtcd()
  })
  afterAll(() => service.stop())

  const leasehold = (...args: string[]): Promise<Finished> => {
    return new Cli(args, { env: { LEASEHOLD_URL: `etcd://127.0.0.1:${service.port}` } }).finished
  }

  it('runs a command under a lock, and shows, watches and ends what is there', async () => {
    const script = 'console.log(process.env.LEASEHOLD_FENCING_TOKEN)'
    const ran = await leasehold('run', 'nightly', '--', process.execPath, '-e', script)
    expect(ran).toMatchObject({ code: 0 })
    expect(BigInt(ran.stdout.trim())).toBeGreaterThan(2n ** 48n)
    const env = { LEASEHOLD_URL: `etcd://127.0.0.1:${service.port}` }
    const long = new Cli(
      ['run', 'long', '--', process.execPath, '-e', "console.log('runs'); setTimeout(() => {}, 60000)"],
      { env },
    )
    await long.printed('runs')
    expect((await leasehold('ls')).stdout).toContain('long')
    expect((await leasehold('inspect', 'long')).stdout).toContain('long')
    const busy = await leasehold('run', 'long', '--wait', '0', '--', process.execPath, '-e', '')
    expect(busy.code).toBe(75)
    const { sessions } = JSON.parse((await leasehold('session', 'ls', '--json')).stdout) as {
      sessions: { id: string }[]
    }
    expect(sessions).toHaveLength(1)
    expect(await leasehold('session', 'end', sessions[0]?.id ?? '')).toMatchObject({ code: 0 })
    expect((await long.finished).code).toBe(76)
  })

  it('keeps registers, steals, checks and raises the epoch', async () => {
    expect(await leasehold('put', 'flags', '{"dark":true}')).toMatchObject({ code: 0 })
    expect((await leasehold('get', 'flags')).stdout).toContain('dark')
    expect(await leasehold('steal', 'nobody', '--reason', 'test')).toMatchObject({ code: expect.any(Number) })
    // Whether this machine is well is not the test's business: it may be busy.
    const { checks } = JSON.parse((await leasehold('doctor', '--json')).stdout) as {
      checks: { check: string; ok: boolean }[]
    }
    expect(checks.filter(({ check, ok }) => ok && ['reachable', 'locks', 'ttl'].includes(check))).toHaveLength(3)
    expect((await leasehold('engines', 'epoch', '3')).stdout).toContain('epoch 3 has begun (it was 1)')
    expect((await leasehold('engines', 'epoch', '3')).code).toBe(64)
  })

  it('runs the code of docs/engines/etcd.md as printed', async () => {
    const blocks = blocksOf('docs/engines/etcd.md')
    expect(blocks).toHaveLength(1)
    for (const block of blocks) await runBlock(block, { '127.0.0.1:2379': `127.0.0.1:${service.port}` })
  })

  it('says which commands need a Leasehold service', async () => {
    const refused = await leasehold('cluster', 'status')
    expect(refused.code).toBe(64)
    expect(refused.stderr).toContain('needs a Leasehold service')
  })
})
