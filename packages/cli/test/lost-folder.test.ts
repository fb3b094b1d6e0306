import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { complained, type Service, until, Workshop } from './support/cli.js'
import { freePort } from '../../../tests/services/ports.js'
import { removeFolder } from '../../../tests/services/remove.js'

const FAULTS = pathToFileURL(fileURLToPath(new URL('./support/folder-faults.mjs', import.meta.url))).href
const EXIT_STORAGE = 74
/** The member checks once a second; the machine may be busy. */
const NOTICED_MS = 20_000

const workshop = new Workshop()
afterAll(() => workshop.close())

const place = (): string => join(workshop.folder(), 'data')

async function put(url: string, value: number): Promise<number> {
  const answer = await fetch(`${url}/v1/registers?key=k`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ value }),
    signal: AbortSignal.timeout(5000),
  }).catch(() => undefined)
  return answer?.status ?? 0
}

async function readyz(url: string): Promise<{ status: number; reasons: string[] }> {
  const answer = await fetch(`${url}/readyz`)
  return { status: answer.status, ...((await answer.json()) as { reasons: string[] }) }
}

/** Files are made in the background for a while. */
const rests = (data: string): Promise<void> =>
  until(() => {
    const names = readdirSync(data)
    const spares = names.filter((name) => /^spare-\d+$/.test(name))
    return spares.length >= 2 && names.every((name) => !name.endsWith('.tmp'))
  }, 'the files in reserve are made')

async function serve(data: string): Promise<Service> {
  const service = await workshop.serve(data)
  await rests(data)
  return service
}

/** The member ends by itself, with one message that holds all of `words`, and acknowledges nothing from then on. */
async function stops({ cli, url }: Service, ...words: string[]): Promise<void> {
  await until(async () => !cli.running || (await put(url, 1)) !== 200, 'nothing is acknowledged any more', NOTICED_MS)
  expect(await put(url, 2)).not.toBe(200)
  const { code, stderr } = await cli.finished
  expect([code, stderr]).toEqual([EXIT_STORAGE, expect.stringContaining('Bring the folder back to its path')])
  for (const word of words) expect(stderr).toContain(word)
}

/** With a disk whose faults the test chooses. */
async function serveWithFaults(data: string): Promise<Service & { fault(what: string): void }> {
  const args = ['serve', '--data', data, '--listen', `127.0.0.1:${await freePort()}`, '--json']
  const cli = workshop.start(args, { env: { NODE_OPTIONS: `--import ${FAULTS}` } })
  await cli.printed('\n')
  const { url, epoch } = JSON.parse(cli.stdout) as { url: string; epoch: number }
  const file = join(dirname(data), 'fault')
  const fault = (what: string): void => (what === '' ? rmSync(file) : writeFileSync(file, what))
  return { cli, url, epoch, fault }
}

const warnings = ({ cli }: Service, text: string): number => cli.stderr.split(text).length - 1

describe('a member stops', () => {
  test('when its data folder is deleted', async () => {
    const data = place()
    const service = await serve(data)
    removeFolder(data)
    await stops(service, `the data folder ${data} is gone`)
  })

  test('when its data folder is replaced by another one, which it leaves unchanged', async () => {
    const data = place()
    await serve(`${data}-other`).then(({ cli }) => {
      cli.kill('SIGTERM')
      return cli.finished
    })
    const before = readdirSync(`${data}-other`)
    const service = await serve(data)
    renameSync(data, `${data}-away`)
    renameSync(`${data}-other`, data)
    await stops(service)
    const { stderr } = await service.cli.finished
    // It may have looked between the two renames.
    expect(stderr).toMatch(/is not the folder of this member any more|is gone \(deleted, renamed or unmounted\)/)
    expect(readdirSync(data)).toEqual(before)
    removeFolder(data)
    renameSync(`${data}-away`, data)
    const { cli, url } = await serve(data)
    expect(await put(url, 3)).toBe(200)
    cli.kill('SIGKILL')
  })

  test('when its data folder is replaced by an empty one', async () => {
    const data = place()
    const service = await serve(data)
    renameSync(data, `${data}-away`)
    mkdirSync(data)
    await stops(service)
    // It may have looked between the two steps above.
    expect((await service.cli.finished).stderr).toMatch(
      /another folder is at|is gone \(deleted, renamed or unmounted\)/,
    )
    expect(readdirSync(data)).toEqual([])
  })

  test('when its owner file alone is removed', async () => {
    const data = place()
    const service = await serve(data)
    rmSync(join(data, 'owner.1'))
    await stops(service, 'owner.1 is gone')
  })

  test('when its log file alone is removed', async () => {
    const data = place()
    const service = await serve(data)
    for (const name of readdirSync(data)) if (name.startsWith('log-')) rmSync(join(data, name))
    await stops(service, 'a log file', 'was deleted')
  })

  test('as soon as /readyz is requested', async () => {
    const data = place()
    const service = await serve(data)
    removeFolder(data)
    // A check that takes longer than half a second is answered with the one before: on a busy machine it is asked again.
    await until(
      async () => (await readyz(service.url).catch(() => ({ status: 503 }))).status === 503,
      'it is not ready',
      NOTICED_MS,
    )
    await stops(service)
  })

  test('when the device of its folder fails for 3 s, and not before', async () => {
    const service = await serveWithFaults(place())
    for (const code of ['ESTALE', 'EIO']) {
      service.fault(code)
      await complained(service.cli, `${code}: as the test wants it`)
      await until(async () => (await readyz(service.url)).status === 503, 'it says so')
      service.fault('')
      await until(async () => (await readyz(service.url)).status === 200, 'the device is back')
    }
    expect(await put(service.url, 1)).toBe(200)
    service.fault('ENODEV')
    const { code, stderr } = await service.cli.finished
    expect([code, stderr]).toEqual([EXIT_STORAGE, expect.stringContaining('has failed for 3 s: ENODEV')])
  })
})

describe('a member keeps serving', () => {
  test.each(['EACCES', 'EMFILE'])('when its folder cannot be checked (%s), and warns once', async (code) => {
    const service = await serveWithFaults(place())
    service.fault(code)
    await complained(service.cli, 'the data folder cannot be checked')
    await sleep(4000)
    expect(warnings(service, 'the data folder cannot be checked')).toBe(1)
    expect((await readyz(service.url)).status).toBe(200)
    expect(await put(service.url, 1)).toBe(200)
  })

  test('while its file system hangs, reports that, and is not ready', async () => {
    const data = place()
    const service = await serveWithFaults(data)
    await rests(data)
    service.fault('hang')
    await complained(service.cli, 'the data folder does not answer: its file system hangs')
    const asked = performance.now()
    const { status, reasons } = await readyz(service.url)
    expect([status, reasons.join()]).toEqual([503, expect.stringContaining('has not returned for')])
    expect(performance.now() - asked).toBeLessThan(5000)
    // What can be done without that file system is done.
    expect(await put(service.url, 1)).toBe(200)
    expect(warnings(service, 'its file system hangs')).toBe(1)
    service.cli.kill('SIGTERM')
    expect((await service.cli.finished).code).toBe(0)
  })
})

describe('a copy of a data folder', () => {
  const refused = async (data: string, ...words: string[]): Promise<void> => {
    const end = await workshop.run(['serve', '--data', data, '--listen', `127.0.0.1:${await freePort()}`])
    expect(end.code).toBe(EXIT_STORAGE)
    for (const word of words) expect(end.stderr).toContain(word)
  }
  const copy = async (from: string, to: string): Promise<void> => {
    await rests(from)
    cpSync(from, to, { recursive: true, filter: (name) => !name.endsWith('.sock') })
  }

  test('does not start while its original is served, and starts once the original has ended', async () => {
    const data = place()
    const service = await serve(data)
    await copy(data, `${data}-copy`)
    await refused(`${data}-copy`, `is a copy of ${data}`, 'is in use by n1')
    expect(await put(service.url, 1)).toBe(200)
    service.cli.kill('SIGKILL')
    await service.cli.finished
    const { url } = await serve(`${data}-copy`)
    expect(await put(url, 2)).toBe(200)
  })

  test('does not start if its original was restarted or verified since', async () => {
    const data = place()
    const first = await serve(data)
    await copy(data, `${data}-copy`)
    first.cli.kill('SIGTERM')
    await first.cli.finished
    const second = await serve(data)
    expect((await workshop.run(['verify', '--data', `${data}-copy`])).code).toBe(0)
    await refused(`${data}-copy`, `is a copy of ${data}`)
    expect(await put(second.url, 1)).toBe(200)
  })

  test('is distinguished from a moved folder, and from its replacement', async () => {
    const data = place()
    const first = await serve(data)
    first.cli.kill('SIGKILL')
    await first.cli.finished
    renameSync(data, `${data}-moved`)
    // Another service lives where the folder was.
    await serve(data)
    const { url } = await serve(`${data}-moved`)
    expect(await put(url, 1)).toBe(200)
    expect(existsSync(join(`${data}-moved`, 'owner.2'))).toBe(true)
  })
})
