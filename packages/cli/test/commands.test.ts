import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ERRORS, type ErrorCode, errorOf } from '@leasehold/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exitCodeOf } from '../src/error-report.js'
import { createProgram } from '../src/program.js'
import { VERSION } from '../src/version.js'
import { type Finished, type Service, until, Workshop } from './support/cli.js'

const workshop = new Workshop()
let service: Service

beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
})
afterAll(() => workshop.close())

const leasehold = (...args: string[]): Promise<Finished> => workshop.run(args, { env: { LEASEHOLD_URL: service.url } })

/** The JSON that a command printed; it must have succeeded. */
async function json(...args: string[]): Promise<Record<string, unknown>> {
  const end = await leasehold(...args, '--json')
  expect([args, end.code, end.stderr]).toEqual([args, 0, ''])
  return JSON.parse(end.stdout) as Record<string, unknown>
}

describe('acquire, renew, release', () => {
  test('other processes can renew and release a handle', async () => {
    const got = await leasehold('acquire', 'script/a', '--ttl', '240s', '--data', 'nightly')
    expect(got.code).toBe(0)
    const handle = got.stdout.trim()
    expect(got.stderr).toMatch(/^token \d+/)
    expect((await leasehold('acquire', 'script/a', '--wait', '0')).code).toBe(75)
    expect((await leasehold('renew', handle)).stdout).toMatch(/^renewed, for \d+ ms/)
    const held = (await json('inspect', 'script/a')).held as { data: string }[]
    expect(held[0]?.data).toBe('nightly')
    expect((await leasehold('release', handle)).stdout).toBe('released\n')
    expect((await leasehold('release', handle)).code).toBe(76)
    expect((await leasehold('renew', handle)).code).toBe(76)
    expect((await leasehold('acquire', 'script/a', '--wait', '0')).code).toBe(0)
  })

  test('--json prints handle and token, and acquires in the given mode', async () => {
    const shared = await json('acquire', 'script/b', '--shared', '--ttl', '120s')
    expect(await json('acquire', 'script/b', '--shared')).toMatchObject({ token: shared.token })
    const permit = await json('acquire', 'script/c', '--permits', '2')
    expect(permit).toMatchObject({ slot: 0 })
  })

  test('exits with 64 for an invalid handle', async () => {
    expect((await leasehold('release', 'nonsense')).code).toBe(64)
    expect((await leasehold('acquire', 'x', '--ttl', '30')).code).toBe(64)
  })
})

describe('ls, inspect, steal, session', () => {
  test('show holders and queues below a prefix of whole path segments', async () => {
    const { token } = await json('acquire', 'list/1', '--ttl', '240s')
    await json('acquire', 'list/10', '--ttl', '60s')
    const waiter = workshop.start(['acquire', 'list/1', '--url', service.url])
    const waits = async () => {
      const { pending } = (await (await fetch(`${service.url}/v1/locks?name=list/1`)).json()) as { pending: unknown[] }
      return pending.length === 1
    }
    await until(waits, 'it waits')
    const listed = await json('ls', 'list/1')
    expect((listed.held as { locks: unknown }[]).map((row) => row.locks)).toEqual([
      [{ name: 'list/1', mode: 'exclusive', token }],
    ])
    const text = (await leasehold('ls', 'list')).stdout
    expect(text).toMatch(/^LOCK +MODE +HOLDER +TOKEN +AGE +LEFT +QUEUE\n/)
    expect(text).toMatch(new RegExp(`list/1 +exclusive .* ${token} .* 1\n`))
    expect((await leasehold('inspect', 'list/1')).stdout).toMatch(/held +exclusive, token \d+[\s\S]*queue 1/)
    expect((await leasehold('inspect', 'list/none')).stdout).toBe('list/none\n  free\n')
    expect((await leasehold('steal', 'list/1', '--reason', 'test')).code).toBe(0)
    expect((await waiter.finished).code).toBe(0)
    expect((await leasehold('steal', 'list/none', '--reason', 'test')).code).toBe(76)
    expect((await leasehold('steal', 'list/1')).code).toBe(64)
  })

  test('session end releases the holds of the session', async () => {
    await json('acquire', 'session/a', '--ttl', '240s')
    const held = (await json('inspect', 'session/a')).held as { session: string }[]
    const id = held[0]?.session as string
    const listed = (await json('session', 'ls')).sessions as { id: string; holds: number }[]
    expect(listed.find((row) => row.id === id)).toMatchObject({ holds: 1 })
    expect((await leasehold('session', 'end', id)).code).toBe(0)
    expect((await json('inspect', 'session/a')).held).toEqual([])
  })

  test.each(['1', '0', 'abc', '9223372036854775807'])('rejects an invalid session id: %s', async (text) => {
    const end = await leasehold('session', 'end', text)
    expect([end.code, end.stderr]).toEqual([64, expect.stringContaining(`${text} is not the id of a session`)])
    expect(end.stderr).toContain('leasehold session ls')
  })
})

describe('get, put, watch', () => {
  test('registers store bytes, and compare versions', async () => {
    expect((await leasehold('get', 'reg/a')).code).toBe(1)
    const { version } = await json('put', 'reg/a', 'one', '--if-version', '0')
    expect((await leasehold('put', 'reg/a', 'two', '--if-version', '0')).code).toBe(1)
    const second = await json('put', 'reg/a', 'two', '--if-version', String(version))
    expect(BigInt(second.version as string)).toBeGreaterThan(BigInt(version as string))
    const got = await leasehold('get', 'reg/a')
    expect([got.stdout, got.stderr]).toEqual(['two', `version ${second.version}\n`])
    const piped = await workshop.run(['put', 'reg/b', '-', '--url', service.url], { input: 'from stdin' })
    expect(piped.code).toBe(0)
    expect((await leasehold('get', 'reg/b')).stdout).toBe('from stdin')
  })

  test('watch prints events as they happen', async () => {
    const watch = workshop.start(['watch', 'seen', '--json', '--url', service.url])
    await until(async () => {
      await leasehold('put', 'seen/probe', 'x')
      return watch.stdout.includes('seen/probe')
    }, 'the watch is on')
    const { token } = await json('acquire', 'seen/lock')
    await watch.printed('seen/lock')
    const events = watch.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(events.find((event) => event.kind === 'held')).toMatchObject({ locks: [{ name: 'seen/lock', token }] })
    watch.kill('SIGTERM')
  })
})

describe('guard sql', () => {
  test.each(['pg', 'mysql', 'sqlite'])('prints the migration for %s', async (kind) => {
    const end = await leasehold('guard', 'sql', kind)
    expect(end.code).toBe(0)
    expect(end.stdout).toMatch(/CREATE TABLE/i)
  })

  test('prints the other forms', async () => {
    const trigger = ['--form', 'trigger', '--on', 'shop.invoice', '--resource', 'billing/{id}']
    expect((await leasehold('guard', 'sql', 'pg', ...trigger)).stdout).toContain('ON "shop"."invoice"')
    const column = await leasehold('guard', 'sql', 'mysql', '--form', 'column', '--on', 'invoice')
    expect(column.stdout).toContain('ALTER TABLE `invoice` ADD COLUMN leasehold_token')
    expect((await leasehold('guard', 'sql', 'mysql', ...trigger)).code).toBe(64)
  })

  test('exits with 64 for an unknown kind', async () => {
    expect((await leasehold('guard', 'sql', 'abacus')).code).toBe(64)
  })
})

describe('bench', () => {
  test('prints one JSON object per workload, for a given service and for its own', async () => {
    const given = await leasehold('bench', '--seconds', '1')
    const own = await workshop.run(['bench', '--seconds', '1'])
    for (const { code, stdout } of [given, own]) {
      expect(code).toBe(0)
      const lines = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(lines.map(({ workload }) => workload)).toEqual(['one-client', 'distinct-names', 'hand-offs'])
      for (const { opsPerSecond, p50Ms, p99Ms } of lines) {
        expect(opsPerSecond).toBeGreaterThan(1)
        expect(p99Ms).toBeGreaterThanOrEqual(p50Ms as number)
      }
    }
    expect(own.stderr).toContain('a service of its own')
  })
})

describe('doctor', () => {
  /** Whether this machine is well is not the test's business: it may be busy. */
  async function doctor(...args: string[]) {
    const { stdout } = await leasehold('doctor', '--json', ...args)
    return JSON.parse(stdout) as { checks: { check: string; ok: boolean; text: string }[] }
  }

  test('checks the machine: disk, open files, pauses and clocks', async () => {
    const { checks } = await doctor('--data', workshop.folder())
    const seen = new Map(checks.map((one) => [one.check, one.text]))
    for (const check of ['version', 'data', 'flush', 'pauses', 'clock', 'reachable', 'quorum', 'locks', 'ttl']) {
      expect([...seen.keys()]).toContain(check)
    }
    expect(seen.get('flush')).toMatch(/p99 [\d.]+ ms/)
  })

  const hasTmpfs = existsSync('/dev/shm') && statfsSync('/dev/shm').type === 0x01021994
  test.skipIf(!hasTmpfs)('rejects a memory file system for data (needs a tmpfs at /dev/shm)', async () => {
    const { code, stdout } = await workshop.run(['doctor', '--data', '/dev/shm', '--url', service.url])
    expect([code, stdout]).toEqual([1, expect.stringContaining('lost at a power failure')])
  })

  test('reports all checks, and a hint for a failed one', async () => {
    const { checks } = await doctor()
    for (const name of ['reachable', 'quorum', 'locks', 'ttl']) {
      expect(checks.find(({ check }) => check === name)).toMatchObject({ check: name, ok: true })
    }
    const away = await workshop.run(['doctor', '--url', 'http://127.0.0.1:1'])
    expect(away.code).toBe(69)
    expect(away.stdout).toContain('leasehold serve')
  })
})

/** Packages of which a command has loaded something. */
async function loadedBy(...args: string[]): Promise<string[]> {
  const folder = workshop.folder()
  const { code } = await workshop.run(args, { env: { LEASEHOLD_URL: service.url, NODE_V8_COVERAGE: folder } })
  expect(code).toBe(0)
  const packages = new Set<string>()
  for (const file of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { result: { url: string }[] }
    for (const { url } of result) {
      const name = /\/(?:node_modules|packages)\/((?:@[^/]+\/)?[^/]+)\/(?!.*\/node_modules\/)/.exec(url)?.[1]
      if (name !== undefined) packages.add(name)
    }
  }
  return [...packages].sort()
}

describe('every command', () => {
  test('--version is that of package.json', async () => {
    const file = fileURLToPath(new URL('../package.json', import.meta.url))
    expect(VERSION).toBe((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version)
    expect((await leasehold('--version')).stdout).toBe(`${VERSION}\n`)
  })

  test('has a help text with an example, and --json', () => {
    const program = createProgram({ code: 0 })
    const leaves = program.commands.flatMap((command) => (command.commands.length > 0 ? command.commands : [command]))
    expect(leaves.length).toBeGreaterThan(12)
    for (const command of leaves) {
      let help = ''
      command.configureOutput({ writeOut: (text) => (help += text) })
      command.outputHelp()
      expect([command.name(), help]).toEqual([command.name(), expect.stringMatching(/Examples?:\n {2}\$ /)])
      expect([command.name(), help]).toEqual([command.name(), expect.stringContaining('--json')])
    }
  })

  test('documents exactly the exit codes of all errors, in the guide and in the help', async () => {
    const exits = [...new Set([0, 1, ...Object.values(ERRORS).map(({ exit }) => exit as number)])].sort((a, b) => a - b)
    const guide = readFileSync(fileURLToPath(new URL('../../../docs/cli.md', import.meta.url)), 'utf8')
    const table = guide.slice(guide.indexOf('| exit code |'), guide.indexOf('Most commands give up'))
    expect([...table.matchAll(/^\| (\d+) \|/gm)].map((row) => Number(row[1]))).toEqual(exits)
    const { stdout } = await leasehold('--help')
    const help = stdout.slice(stdout.indexOf('Exit codes:'), stdout.indexOf('Examples:'))
    expect([...help.matchAll(/(?:^|· |  )(\d+) /gm)].map((row) => Number(row[1]))).toEqual(exits)
  })

  test('exits with the code of the error table', () => {
    for (const [code, { exit }] of Object.entries(ERRORS)) {
      expect([code, exitCodeOf(errorOf(code as ErrorCode, 'x'))]).toEqual([code, exit])
    }
    expect(exitCodeOf(new Error('x'))).toBe(1)
  })

  test.each([
    ['clutser status', 'cluster'],
    ['cluster stats', 'status'],
    ['ls --jso', '--json'],
  ])('suggests the correct word for a typo: %s', async (line, meant) => {
    const end = await leasehold(...line.split(' '))
    expect([end.code, end.stderr]).toEqual([64, expect.stringContaining(`Did you mean ${meant}?`)])
  })

  test('loads only the packages it needs', async () => {
    expect(await loadedBy('acquire', 'loaded', '--ttl', '1s')).toEqual([
      'cli',
      'commander',
      'core',
      'leasehold',
      'picocolors',
    ])
    expect(await loadedBy('ls')).toEqual(['cli', 'client', 'commander', 'core', 'leasehold', 'picocolors', 'ws'])
  })

  test('exits with 64 for wrong usage, and with 69 for an unreachable service', async () => {
    const wrong = await Promise.all([
      leasehold('bogus'),
      leasehold('ls', '--bogus'),
      leasehold('ls', '--url', 'gopher://x'),
    ])
    expect(wrong.map((end) => end.code)).toEqual([64, 64, 64])
    const commands = [['ls'], ['get', 'x'], ['acquire', 'x'], ['put', 'x', 'y']]
    const away = await Promise.all(commands.map((args) => workshop.run([...args, '--url', 'http://127.0.0.1:1'])))
    expect(away.map((end) => end.code)).toEqual([69, 69, 69, 69])
    for (const end of away) expect(end.stderr).toContain('is the service running? try: leasehold serve')
  })

  test('prints a hint with an error', async () => {
    await leasehold('put', 'hint/a', 'one')
    const ends = await Promise.all([
      leasehold('put', 'hint/a', 'two', '--if-version', '0'),
      leasehold('steal', 'hint/nobody', '--reason', 'x'),
      leasehold('ls', '--url', 'etcd://127.0.0.1:1'),
      leasehold('ls', '--api-key-file', '/nowhere'),
    ])
    expect(ends.map(({ code }) => code)).toEqual([1, 76, 69, 64])
    const [conflict, steal, etcd, key] = ends.map(({ stderr }) => stderr)
    expect(conflict).toContain('leasehold get')
    expect(steal).toContain('leasehold ls')
    expect(etcd).not.toContain('leasehold serve')
    expect(key).toContain('ENOENT')
  })

  test('prints an error as one JSON line on stderr with --json', async () => {
    const end = await workshop.run(['ls', '--json', '--url', 'http://127.0.0.1:1'])
    expect(JSON.parse(end.stderr)).toMatchObject({ error: { code: 'unreachable', retryable: true } })
    for (const args of [
      ['ls', '--bogus', '--json'],
      ['steal', 'x', '--json'],
      ['acquire', 'x', '--ttl', '30', '--json'],
    ]) {
      const { code, stderr } = await leasehold(...args)
      expect([code, JSON.parse(stderr)]).toEqual([
        64,
        { error: expect.objectContaining({ code: 'invalid' }) as unknown },
      ])
    }
    expect((await leasehold('run', 'x', '--bogus', '--', 'echo', '--json')).stderr).toContain('unknown option')
  })
})
