import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, Workshop } from '../../packages/cli/test/support/cli.js'

const here = fileURLToPath(new URL('.', import.meta.url))
const installed = (file: string) => join(here, 'node_modules', file)

/** The runtimes, each by the plain binary of a package. `webSocket`: has a WebSocket of its own. */
const RUNTIMES = [
  { name: 'Node 20', command: process.execPath, args: [], major: 20, webSocket: false },
  { name: 'Node 22', command: installed('node22/bin/node'), args: [], major: 22, webSocket: true },
  { name: 'Node 24', command: installed('node24/bin/node'), args: [], major: 24, webSocket: true },
  { name: 'Bun', command: installed('@oven/bun-linux-x64/bin/bun'), args: [], webSocket: true },
  // Without a lock file of its own, and with the rights that a client needs: the network, and to read packages.
  {
    name: 'Deno',
    command: installed('@deno/linux-x64-glibc/deno'),
    args: ['run', '--no-lock', '--allow-net', '--allow-read', '--allow-env', '--allow-sys'],
    webSocket: true,
  },
] as const

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

const PACKAGES = [
  'leasehold',
  ...['core', 'raft', 'replica', 'client', 'engines', 'fence', 'server', 'lab'].map((name) => `@leasehold/${name}`),
]
const MODULES = [
  ...PACKAGES,
  ...['compat/redlock', 'compat/redis-semaphore', 'compat/web-locks', 'nest', 'fastify', 'hono'].map(
    (name) => `leasehold/${name}`,
  ),
]

function run(
  command: string,
  args: readonly string[],
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(command, args, {
    cwd: here,
    timeout: 150_000,
    env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1' },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => resolve({ status, stdout, stderr }))
  })
}

let played: Promise<Record<string, string>> | undefined
/** The traces of the program that runs this test. */
function tracesHere(): Promise<Record<string, string>> {
  played ??= run(process.execPath, [join(here, 'fixtures', 'lab.mjs')]).then(({ stdout }) => JSON.parse(stdout))
  return played
}

const workshop = new Workshop()
let service: Service
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
})
afterAll(() => workshop.close())

describe.each(RUNTIMES)('$name', (runtime) => {
  const { name, command, args } = runtime
  const usable =
    existsSync(command) && (!('major' in runtime) || name !== 'Node 20' || process.versions.node.startsWith('20.'))

  const does = async (fixture: string) => {
    const { status, stdout, stderr } = await run(command, [...args, join(here, 'fixtures', fixture), service.url])
    expect([status, stderr]).toEqual([0, stderr])
    expect(JSON.parse(stdout)).toEqual(HAPPENED)
  }

  const only = test.skipIf(!usable)

  only('leasehold holds, releases and loses locks of a service', () => does('leasehold.mjs'))

  if (runtime.webSocket) {
    only('@leasehold/client alone does, too, over the WebSocket of the runtime', () => does('client.mjs'))
  }

  if ('major' in runtime) {
    only('the lab has the same traces as here, for scenarios and explored seeds', { timeout: 320_000 }, async () => {
      const { status, stdout, stderr } = await run(command, [...args, join(here, 'fixtures', 'lab.mjs')])
      expect([status, stderr]).toEqual([0, stderr])
      const traces = JSON.parse(stdout) as Record<string, string>
      expect(Object.values(traces)).toEqual(Object.values(traces).map(() => expect.stringMatching(/^[0-9a-f]{16}$/)))
      expect(traces).toEqual(await tracesHere())
    })

    only('require() loads every package', async () => {
      const code = `for (const name of ${JSON.stringify(MODULES)}) if (Object.keys(require(name)).length === 0) throw new Error(name)`
      const { status, stderr } = await run(command, ['-e', code])
      expect([status, stderr.replace(/^.*ExperimentalWarning[\s\S]*$/m, '')]).toEqual([0, ''])
    })
  }
})
