import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pack, run } from './hygiene.mjs'

// What an application gets from the registry: the tarballs of the packages, installed into an empty folder without a network.
const root = fileURLToPath(new URL('../../', import.meta.url))
const MB = 1e6
const BLOCK_BYTES = 4096

const SDK = ['leasehold', 'client', 'core', 'engines', 'raft', 'replica'].map((name) => `packages/${name}`)
const workshop = mkdtempSync(join(tmpdir(), 'leasehold-install-'))
const tarballs = join(workshop, 'tarballs')

beforeAll(async () => {
  mkdirSync(tarballs)
  for (const folder of [...SDK, 'node_modules/ws']) await pack(join(root, folder), tarballs)
})
afterAll(() => rmSync(workshop, { recursive: true, force: true }))

/** Installs the tarballs whose names match into an empty folder; returns the folder. */
async function install(name: string, matches: RegExp): Promise<string> {
  const folder = join(workshop, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const files = readdirSync(tarballs).filter((file) => matches.test(file))
  const args = ['install', '--offline', '--no-audit', '--no-fund', ...files.map((file) => join(tarballs, file))]
  expect(await run('npm', args, folder)).toMatchObject({ status: 0 })
  return folder
}

interface Installed {
  readonly packages: readonly string[]
  /** Sum of the sizes of all files. */
  readonly bytes: number
  /** The same in whole blocks, as `du` counts. */
  readonly bytesOnDisk: number
}

function measure(folder: string): Installed {
  const modules = join(folder, 'node_modules')
  const names = readdirSync(modules).filter((name) => !name.startsWith('.'))
  const packages = names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  )
  const sizes = readdirSync(modules, { recursive: true, encoding: 'utf8' })
    .map((file) => statSync(join(modules, file)))
    .map((stat) => (stat.isFile() ? stat.size : BLOCK_BYTES))
  return {
    packages,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    bytesOnDisk: sizes.reduce((sum, size) => sum + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES, 0),
  }
}

describe('leasehold in an empty folder', () => {
  let folder: string
  beforeAll(async () => {
    folder = await install('sdk', /./)
  })

  test('brings at most 10 packages and 5 MB', () => {
    const { packages, bytesOnDisk } = measure(folder)
    expect(packages).toContain('leasehold')
    expect(packages.length).toBeLessThanOrEqual(10)
    expect(bytesOnDisk).toBeLessThan(5 * MB)
  })

  test('grants a lock, and loads from every entry point without a peer', async () => {
    const program = `
      import { createLocks } from 'leasehold'
      import { createTestService } from 'leasehold/testing'
      for (const entry of ['nest', 'fastify', 'hono', 'compat/redlock', 'compat/redis-semaphore', 'compat/web-locks']) {
        await import('leasehold/' + entry)
      }
      const locks = createLocks('memory:installed')
      console.log(await locks.request('a', (hold) => typeof hold.token))
      await locks.close()
      const service = await createTestService()
      await service.close()
    `
    writeFileSync(join(folder, 'program.js'), program)
    expect(await run(process.execPath, ['program.js'], folder)).toEqual({ status: 0, output: 'bigint\n' })
  })

  test('has a bin that names the package of the command line', async () => {
    const bin = join(folder, 'node_modules/.bin/leasehold')
    expect(await run(bin, ['ls'], folder)).toEqual({
      status: 64,
      output: expect.stringContaining('npm install @leasehold/cli') as unknown,
    })
  })
})

test('@leasehold/client in an empty folder brings core alone, and at most 1 MB', async () => {
  const { packages, bytes } = measure(await install('client', /^leasehold-(client|core)-/))
  expect(packages).toEqual(['@leasehold/client', '@leasehold/core'])
  expect(bytes).toBeLessThan(MB)
})
