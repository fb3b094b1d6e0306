import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { widthOf } from '../src/terminal-text.js'
import { complained, type Service, until, Workshop } from './support/cli.js'
import { COLOURS, hasTerminal, TerminalCli } from './support/terminal.js'

const workshop = new Workshop()
const opened: TerminalCli[] = []
let service: Service
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
})
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()))
  await workshop.close()
})

const leasehold = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await workshop.run(args, { env: { LEASEHOLD_URL: service.url } })
  expect([args, code, stderr]).toEqual([args, 0, expect.anything()])
  return stdout.trim()
}

/** Over HTTP: a process for each would take longer than what is tested. */
async function put(key: string): Promise<void> {
  const { status } = await fetch(`${service.url}/v1/registers?key=${key}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body: 'x',
  })
  expect(status).toBe(200)
}

function onTerminal(args: string[], options: { columns?: number; rows?: number; env?: NodeJS.ProcessEnv } = {}) {
  const { env, ...size } = options
  const cli = new TerminalCli(args, { ...size, env: { LEASEHOLD_URL: service.url, ...env } })
  opened.push(cli)
  return cli
}

// Most of the time is waiting, and no test sees the locks of another.
describe.skipIf(!hasTerminal).concurrent('on a terminal (needs script of util-linux)', () => {
  test('ls --live shows a grant and a release, counts the lease down, and restores the terminal', async () => {
    const cli = onTerminal(['ls', 'seen', '--live'])
    await cli.shows(/no locks are held/)
    const handle = await leasehold('acquire', 'seen/a', '--ttl', '60s')
    const [head, , headings] = await cli.shows(/seen\/a +exclusive/)
    expect(head).toMatch(/^leasehold ls seen {3}1 held, 0 wait +http:/)
    expect(headings).toMatch(/^LOCK +MODE +HOLDER +TOKEN +AGE +LEFT +QUEUE$/)
    await cli.shows(/ 5[0-8]\.\ds +0/)
    expect(cli.output).toContain('\x1b[1m')
    await leasehold('release', handle)
    await cli.shows(/no locks are held/)
    cli.type('q')
    expect(await cli.finished).toBe(0)
    expect(cli.output.startsWith('\x1b[?1049h\x1b[?25l')).toBe(true)
    expect(cli.output.endsWith('\x1b[?25h\x1b[?1049l')).toBe(true)
  })

  test('shows a renewal, which emits no event', async () => {
    const handle = await leasehold('acquire', 'renewed', '--ttl', '40s')
    const cli = onTerminal(['ls', 'renewed', '--live'])
    const left = () => Number(/ (\d+\.\d)s +0/.exec(cli.screen.join('\n'))?.[1])
    await until(() => left() < 34, 'six seconds of the lease are over')
    await leasehold('renew', handle)
    await until(() => left() > 35, 'it begins anew')
    cli.type('\x03')
    expect(await cli.finished).toBe(0)
  })

  test('fits lines to a narrow terminal, and never cuts a token', async () => {
    const name = `narrow/${'very-long-name/'.repeat(6)}`
    const handle = await leasehold('acquire', `${name}a`, '--ttl', '120s', '--data', 'x')
    const held = JSON.parse(await leasehold('ls', 'narrow', '--json')) as { held: { locks: { token: string }[] }[] }
    const cli = onTerminal(['ls', 'narrow', '--live'], { columns: 70, rows: 6 })
    const lines = await cli.shows(/narrow/)
    expect(lines).toHaveLength(6)
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(70)
    expect(lines[3]).toContain(` ${held.held[0]?.locks[0]?.token} `)
    await leasehold('release', handle)
  })

  test('inspect --live shows changes of the queue, without colour with NO_COLOR', async () => {
    const cli = onTerminal(['inspect', 'queue/a', '--live'], { env: { NO_COLOR: '1' } })
    await cli.shows(/^ {2}free$/m)
    const handle = await leasehold('acquire', 'queue/a', '--ttl', '240s', '--data', 'first')
    await cli.shows(/held +exclusive, token \d+[\s\S]*data +first/)
    const waiter = workshop.start(['acquire', 'queue/a', '--url', service.url])
    await cli.shows(/queue of 1[\s\S]*queue 1 exclusive/)
    await leasehold('release', handle)
    await waiter.finished
    await cli.shows(/queue of 0/)
    expect(cli.output).not.toMatch(COLOURS)
  })

  test('watch --live shows a table of the newest events', async () => {
    const cli = onTerminal(['watch', 'events', '--live'], { rows: 10 })
    await cli.shows(/nothing has happened yet/)
    await until(async () => {
      await put('events/register')
      return /put +events\/register/.test(cli.screen.join('\n'))
    }, 'the watch is on')
    for (let i = 0; i < 8; i++) await put(`events/${i}`)
    const lines = await cli.shows(/put +events\/7 /)
    expect(lines).toHaveLength(10)
    expect(lines[2]).toMatch(/^TIME +EVENT +NAME +ACTOR +WHAT$/)
  })

  test('shows a lost connection with the last known state, and reconnects', async () => {
    const own = await workshop.serve(workshop.folder())
    const data = JSON.parse(own.cli.stdout) as { data: string }
    const env = { LEASEHOLD_URL: own.url }
    await workshop.run(['acquire', 'kept', '--ttl', '240s'], { env })
    const [ls, watch] = [onTerminal(['ls', '--live'], { env }), onTerminal(['watch', '--live'], { env })]
    await ls.shows(/kept +exclusive/)
    await watch.shows(/live {3}q quits/)
    own.cli.kill('SIGKILL')
    await own.cli.finished
    await ls.shows(/kept +exclusive[\s\S]*connection lost \d.*ago, reconnecting: .*q quits|kept[\s\S]*connection lost/)
    await watch.shows(/connection lost/)
    await workshop.serve(data.data, ['--listen', new URL(own.url).host])
    await ls.shows(/kept +exclusive[\s\S]*live {3}q quits/)
    await watch.shows(/live {3}q quits/)
    await workshop.run(['put', 'back', 'x'], { env })
    await watch.shows(/put +back/)
  })

  test('cuts ordinary tables to the terminal, too', async () => {
    const handle = await leasehold('acquire', `plain/${'long/'.repeat(30)}a`, '--ttl', '120s')
    const cli = onTerminal(['ls', 'plain'], { columns: 90 })
    expect(await cli.finished).toBe(0)
    const lines = cli.output.replace(COLOURS, '').trimEnd().split('\r\n')
    expect(lines).toHaveLength(2)
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(90)
    await leasehold('release', handle)
  })

  test('fails without drawing when the service is unreachable', async () => {
    const cli = onTerminal(['ls', '--live', '--url', 'http://127.0.0.1:1'])
    expect(await cli.finished).toBe(69)
    expect(cli.output).not.toContain('\x1b[?1049h')
    expect(cli.output).toContain('cannot reach http://127.0.0.1:1: connection refused')
  })
})

describe.concurrent('without a terminal', () => {
  test('ls --live prints the table again after every change; with --json, one document per line', async () => {
    const [text, json] = [
      workshop.start(['ls', 'piped', '--live', '--url', service.url]),
      workshop.start(['ls', 'piped', '--live', '--json', '--url', service.url]),
    ]
    await text.printed('no locks are held\n')
    await json.printed('\n')
    const handle = await leasehold('acquire', 'piped/a', '--ttl', '120s')
    await text.printed('piped/a')
    await json.printed('piped/a')
    await leasehold('release', handle)
    await until(() => text.stdout.endsWith('\n\nno locks are held\n'), 'the release was printed')
    expect(text.stdout).not.toContain('\x1b')
    await until(() => json.stdout.trim().split('\n').length === 3, 'three documents')
    const counts = json.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { held: unknown[] }).held.length)
    expect(counts).toEqual([0, 1, 0])
    for (const cli of [text, json]) cli.kill('SIGINT')
    expect([(await text.finished).code, (await json.finished).code]).toEqual([0, 0])
  })

  test('watch continues after a long outage, reports it on stderr, and misses no event', async () => {
    const own = await workshop.serve(workshop.folder())
    const { data } = JSON.parse(own.cli.stdout) as { data: string }
    const env = { LEASEHOLD_URL: own.url }
    const watch = workshop.start(['watch', 'kept', '--json'], { env })
    await until(async () => {
      await workshop.run(['put', 'kept/first', 'x'], { env })
      return watch.stdout.includes('kept/first')
    }, 'the watch is on')
    own.cli.kill('SIGTERM')
    await complained(watch, 'connection lost')
    await own.cli.finished
    // More than a few attempts to connect: the process must not end for want of anything to wait for.
    await new Promise((resolve) => setTimeout(resolve, 2500))
    expect(watch.running).toBe(true)
    await workshop.serve(data, ['--listen', new URL(own.url).host])
    await workshop.run(['put', 'kept/second', 'x'], { env })
    await watch.printed('kept/second')
    await complained(watch, 'reconnected')
    for (const line of watch.stdout.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('cursor')
    watch.kill('SIGTERM')
  })
})
