import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alive, type Service, until, Workshop } from './support/cli.js'

const workshop = new Workshop()
let service: Service
let url: string

beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
  url = service.url
})
afterAll(() => workshop.close())

let names = 0
const freshName = () => `run/${++names}`

function lines(file: string): string[] {
  return readFileSync(file, 'utf8').trim().split('\n')
}

describe('leasehold run', () => {
  test('two runs on one name exclude each other, and the later one gets a greater token', async () => {
    const name = freshName()
    const file = join(workshop.folder(), 'log')
    writeFileSync(file, '')
    const script = 'echo "in $LEASEHOLD_FENCING_TOKEN" >> "$0"; sleep 0.3; echo "out $LEASEHOLD_FENCING_TOKEN" >> "$0"'
    const args = ['run', name, '--url', url, '--', 'sh', '-c', script, file]
    const ends = await Promise.all([workshop.run(args), workshop.run(args), workshop.run(args)])
    expect(ends.map((end) => [end.code, end.stderr])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ])
    const log = lines(file)
    const tokens = log.filter((line) => line.startsWith('in ')).map((line) => BigInt(line.slice(3)))
    expect(log).toEqual(tokens.flatMap((token) => [`in ${token}`, `out ${token}`]))
    expect(tokens).toHaveLength(3)
    expect([...tokens].sort((a, b) => (a < b ? -1 : 1))).toEqual(tokens)
  })

  test('the command gets the lock, the token as a decimal number, the url and its slot', async () => {
    const name = freshName()
    const script = 'echo "$LEASEHOLD_LOCK|$LEASEHOLD_FENCING_TOKEN|$LEASEHOLD_URL|$LEASEHOLD_SLOT"'
    const { stdout } = await workshop.run(['run', name, '--permits', '2', '--', 'sh', '-c', script], {
      env: { LEASEHOLD_URL: url },
    })
    const [lock, token, seenUrl, slot] = stdout.trim().split('|')
    expect([lock, seenUrl, slot]).toEqual([name, url, '0'])
    expect(token).toMatch(/^[1-9][0-9]{0,18}$/)
  })

  test('ends the whole process group when run is killed, and frees the lock after the ttl', async () => {
    const name = freshName()
    const script = 'sleep 60 & echo "pids $$ $!"; wait'
    const first = workshop.start(['run', name, '--url', url, '--ttl', '4s', '--', 'sh', '-c', script])
    await first.printed('pids')
    const pids = first.stdout.trim().split(' ').slice(1).map(Number)
    const killedAt = performance.now()
    first.kill('SIGKILL')
    const second = workshop.run(['run', name, '--url', url, '--', 'true'])
    await until(() => pids.every((pid) => !alive(pid)), 'the group was gone')
    expect(performance.now() - killedAt).toBeLessThan(4_000)
    expect((await second).code).toBe(0)
    expect(performance.now() - killedAt).toBeGreaterThan(1_000)
  })

  test('exits like the command: its code, 128 + n for a signal, 127 not found, 126 not executable', async () => {
    const folder = workshop.folder()
    const plain = join(folder, 'plain')
    writeFileSync(plain, 'no program')
    const code = async (...command: string[]) =>
      (await workshop.run(['run', freshName(), '--url', url, '--', ...command])).code
    expect(await code('sh', '-c', 'exit 7')).toBe(7)
    expect(await code('sh', '-c', 'kill -KILL $$')).toBe(137)
    expect(await code('sh', '-c', 'kill -TERM $$')).toBe(143)
    expect(await code(join(folder, 'absent'))).toBe(127)
    expect(await code(plain)).toBe(126)
  })

  test('exits with 75, or the code of -E, if the lock was not acquired in time', async () => {
    const name = freshName()
    const holder = workshop.start(['run', name, '--url', url, '--', 'sh', '-c', 'echo in; sleep 30'])
    await holder.printed('in')
    const busy = await workshop.run(['run', name, '--url', url, '--wait', '0', '--', 'echo', 'never'])
    expect([busy.code, busy.stdout]).toEqual([75, ''])
    const late = await workshop.run(['run', name, '--url', url, '--wait', '200ms', '-E', '3', '--', 'echo', 'never'])
    expect([late.code, late.stdout]).toEqual([3, ''])
    holder.kill('SIGTERM')
    expect((await holder.finished).code).toBe(143)
  })

  test('exits with 69 for an unreachable service, and with 64 for wrong usage', async () => {
    const away = await workshop.run(['run', 'x', '--url', 'http://127.0.0.1:1', '--', 'echo', 'never'])
    expect([away.code, away.stdout]).toEqual([69, ''])
    expect(away.stderr).toContain('is the service running? try: leasehold serve')
    const wrong = [
      ['run'],
      ['run', 'x'],
      ['run', 'x', '--ttl', '30', '--', 'true'],
      ['run', 'x', '--ttl', 'soon', '--', 'true'],
      ['run', 'x', '--permits', '0', '--', 'true'],
      ['run', 'x', '--shared', '--permits', '2', '--', 'true'],
      ['run', 'x', '--ttl', '2s', '--kill-after', '1500ms', '--', 'true'],
      ['run', 'a\nb', '--', 'true'],
    ]
    const env = { LEASEHOLD_URL: url }
    const codes = await Promise.all(wrong.map(async (args) => [args, (await workshop.run(args, { env })).code]))
    expect(codes).toEqual(wrong.map((args) => [args, 64]))
  })

  test('a signal aborts the wait, and leaves no waiter in the queue', async () => {
    const name = freshName()
    const holder = workshop.start(['run', name, '--url', url, '--', 'sh', '-c', 'echo in; sleep 30'])
    await holder.printed('in')
    const waiter = workshop.start(['run', name, '--url', url, '--wait', 'Infinity', '--', 'echo', 'never'])
    const pending = async () => {
      const answer = await fetch(`${url}/v1/locks?name=${name}`)
      return ((await answer.json()) as { pending: unknown[] }).pending.length
    }
    await until(async () => (await pending()) === 1, 'it waits')
    waiter.kill('SIGTERM')
    const end = await waiter.finished
    expect([end.code, end.stdout]).toEqual([143, ''])
    expect(await pending()).toBe(0)
    holder.kill('SIGKILL')
  })

  test('forwards signals to the process group of the command', async () => {
    const script = 'trap "echo usr1" USR1; trap "echo int; exit 9" INT; echo ready; while :; do sleep 0.05; done'
    const cli = workshop.start(['run', freshName(), '--url', url, '--', 'bash', '-c', script])
    await cli.printed('ready')
    cli.kill('SIGINT')
    const end = await cli.finished
    expect([end.code, end.stdout]).toEqual([9, 'ready\nint\n'])
  })

  test('exits with 76 when the hold is stolen: SIGTERM at once, SIGKILL after the grace period', async () => {
    const name = freshName()
    const script = 'trap "echo term" TERM; echo "pid $$"; while :; do sleep 0.05; done'
    const cli = workshop.start([
      'run',
      name,
      '--url',
      url,
      '--ttl',
      '30s',
      '--kill-after',
      '3s',
      '--',
      'bash',
      '-c',
      script,
    ])
    await cli.printed('pid')
    expect((await workshop.run(['steal', name, '--url', url, '--reason', 'test'])).code).toBe(0)
    const end = await cli.finished
    expect(end.code).toBe(76)
    expect(end.stdout).toContain('term')
    expect(end.stderr).toContain('stolen')
    expect(alive(Number(/pid (\d+)/.exec(end.stdout)?.[1]))).toBe(false)
  })

  test('ends processes that the command leaves in its group before the lock is released', async () => {
    const name = freshName()
    const script = '(trap "" TERM; sleep 60) & echo "pid $!"'
    const cli = workshop.start(['run', name, '--url', url, '--kill-after', '100ms', '--', 'sh', '-c', script])
    const end = await cli.finished
    expect(end.code).toBe(0)
    expect(alive(Number(/pid (\d+)/.exec(end.stdout)?.[1]))).toBe(false)
  })

  test('shared runs hold the lock together', async () => {
    const name = freshName()
    const holder = workshop.start(['run', name, '--shared', '--url', url, '--', 'sh', '-c', 'echo in; sleep 30'])
    await holder.printed('in')
    const args = ['run', name, '--url', url, '--wait', '0']
    expect((await workshop.run([...args, '--shared', '--', 'true'])).code).toBe(0)
    expect((await workshop.run([...args, '--', 'true'])).code).toBe(75)
    holder.kill('SIGTERM')
    await holder.finished
  })
})

// Most of the time is waiting.
describe.concurrent('leasehold run when the lease runs out', () => {
  const ttlMs = 8_000
  const killAfterMs = 3_000
  /** For a busy machine: how late timers and this test's looks may be. */
  const SLACK_MS = 2_000
  /** The local deadline lies this much before the end of the lease. */
  const marginMs = ttlMs / 10

  test('sends SIGTERM at deadline - kill-after and SIGKILL at the deadline when the service is down', async () => {
    const own = await workshop.serve(workshop.folder())
    const script = 'trap "date +%s%3N" TERM; echo "pid $$"; while :; do sleep 0.02; done'
    const ttl = ['--ttl', `${ttlMs}ms`, '--kill-after', `${killAfterMs}ms`]
    const cli = workshop.start(['run', freshName(), '--url', own.url, ...ttl, '--', 'bash', '-c', script])
    await cli.printed('pid')
    const pid = Number(/pid (\d+)/.exec(cli.stdout)?.[1])
    own.cli.kill('SIGSTOP')
    const stoppedAt = Date.now()
    await until(() => !alive(pid), 'the child was gone')
    const diedAt = Date.now()
    const end = await cli.finished
    own.cli.kill('SIGKILL')
    expect(end.code).toBe(76)
    const termAt = Number(end.stdout.trim().split('\n')[1])
    // The last renewal that was answered was sent at most ttl/3 before the service was stopped.
    const latest = stoppedAt + ttlMs - marginMs
    expect(diedAt).toBeLessThan(latest + SLACK_MS)
    expect(diedAt).toBeGreaterThan(latest - ttlMs / 3 - SLACK_MS)
    expect(diedAt - termAt).toBeGreaterThan(killAfterMs - SLACK_MS)
    expect(diedAt - termAt).toBeLessThan(killAfterMs + SLACK_MS)
  })

  test('ends the group in time even while run itself is stopped', async () => {
    const cli = workshop.start([
      'run',
      freshName(),
      '--url',
      url,
      '--ttl',
      `${ttlMs}ms`,
      '--',
      'bash',
      '-c',
      'trap "" TERM; echo "pid $$"; while :; do sleep 0.05; done',
    ])
    await cli.printed('pid')
    const pid = Number(/pid (\d+)/.exec(cli.stdout)?.[1])
    cli.kill('SIGSTOP')
    const stoppedAt = performance.now()
    await until(() => !alive(pid), 'the child was gone')
    expect(performance.now() - stoppedAt).toBeLessThan(ttlMs)
    cli.kill('SIGCONT')
    expect((await cli.finished).code).toBe(76)
  })

  test('ends a stopped command, too', async () => {
    const script = 'echo "pid $$"; kill -STOP $$; sleep 60'
    const cli = workshop.start(['run', freshName(), '--url', url, '--ttl', '3s', '--', 'sh', '-c', script])
    await cli.printed('pid')
    await sleep(300)
    const pid = Number(/pid (\d+)/.exec(cli.stdout)?.[1])
    cli.kill('SIGKILL')
    await until(() => !alive(pid), 'the child was gone')
  })
})
