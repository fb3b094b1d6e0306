import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { canMount, type Mounted, serveMounted } from './support/mounts.js'
import { until, Workshop } from './support/cli.js'

const EXIT_STORAGE = 74
/** Several checks, and several log files. */
const WRITES = 400
const VALUE = 'x'.repeat(60_000)

const workshop = new Workshop()
const running: Mounted[] = []
afterEach(async () => {
  for (const service of running) service.kill('SIGKILL')
  await Promise.all(running.splice(0).map(({ finished }) => finished))
})
afterAll(() => workshop.close())

async function serve(script: string, data: string): Promise<Mounted> {
  const service = await serveMounted(script, data)
  running.push(service)
  return service
}

/** Files are made in the background for a while. */
async function rests(service: Mounted, data: string): Promise<void> {
  await until(() => {
    try {
      service.run('sh', '-c', `! ls '${data}' | grep -q tmp`)
      return true
    } catch {
      return false
    }
  }, 'the files in reserve are made')
}

async function put(url: string, value: unknown): Promise<number> {
  const answer = await fetch(`${url}/v1/registers?key=k`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ value }),
    signal: AbortSignal.timeout(5000),
  }).catch(() => undefined)
  return answer?.status ?? 0
}

const TMPFS = 'mount -t tmpfs none /tmp'

describe.skipIf(!canMount(TMPFS))('a data folder on a mount of its own (needs root and mount)', () => {
  test('stops the member when it is unmounted', async () => {
    const mount = workshop.folder()
    const service = await serve(`mount -t tmpfs none '${mount}'`, join(mount, 'data'))
    expect(await put(service.url, 1)).toBe(200)
    await rests(service, join(mount, 'data'))
    service.run('umount', '-l', mount)
    await until(async () => (await put(service.url, 2)) !== 200, 'nothing is acknowledged any more')
    expect(await service.finished).toBe(EXIT_STORAGE)
    expect(service.stderr()).toContain(`the data folder ${join(mount, 'data')} is gone (deleted, renamed or unmounted)`)
  })

  test('stops the member when the folder is the mount itself, or is mounted over', async () => {
    for (const command of [
      ['umount', '-l'],
      ['mount', '-t', 'tmpfs', 'none'],
    ]) {
      const mount = workshop.folder()
      const service = await serve(`mount -t tmpfs none '${mount}'`, mount)
      expect(await put(service.url, 1)).toBe(200)
      await rests(service, mount)
      service.run(...command, mount)
      expect(await service.finished).toBe(EXIT_STORAGE)
      expect(service.stderr()).toContain(`another folder is at ${mount} now`)
    }
  })

  test('is served again after a remount, with everything that was acknowledged', async () => {
    const [mount, elsewhere] = [workshop.folder(), workshop.folder()]
    const script = `mount --bind '${elsewhere}' '${mount}'`
    const service = await serve(script, join(mount, 'data'))
    expect(await put(service.url, 'kept')).toBe(200)
    service.run('umount', '-l', mount)
    expect(await service.finished).toBe(EXIT_STORAGE)
    const again = await serve(script, join(mount, 'data'))
    const answer = await fetch(`${again.url}/v1/registers?key=k`)
    expect(await answer.json()).toMatchObject({ value: 'kept' })
  })
})

const OVERLAY = [TMPFS, 'cd /tmp', 'mkdir l u w m', 'mount -t overlay none -o lowerdir=l,upperdir=u,workdir=w m']

describe.skipIf(!canMount(...OVERLAY))('a data folder on an overlay file system (needs root and overlay)', () => {
  test('is served, although its device and inode change', async () => {
    const lower = join(workshop.folder(), 'lower')
    mkdirSync(join(lower, 'data'), { recursive: true })
    // What was founded below is copied up by the first write.
    const { cli } = await workshop.serve(join(lower, 'data'))
    cli.kill('SIGTERM')
    await cli.finished
    const mount = workshop.folder()
    const layers = `lowerdir='${lower}',upperdir='${mount}/upper',workdir='${mount}/work'`
    const script = [
      `mount -t tmpfs none '${mount}'`,
      `mkdir '${mount}/upper' '${mount}/work' '${mount}/merged'`,
      `mount -t overlay none -o ${layers} '${mount}/merged'`,
    ].join('\n')
    const service = await serve(script, join(mount, 'merged', 'data'))
    const end = performance.now() + 5000
    for (let i = 0; i < WRITES || performance.now() < end; i++) expect(await put(service.url, VALUE)).toBe(200)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
    expect(service.stderr()).toBe('')
    service.kill('SIGTERM')
    expect(await service.finished).toBe(0)
  })
})
