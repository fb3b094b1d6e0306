import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { Cli, Workshop } from './support/cli.js'

const workshop = new Workshop()
afterAll(() => workshop.close())

const lab = (...args: string[]) => new Cli(['lab', ...args]).finished

describe('leasehold lab', () => {
  test('list: prints every scenario with its expectation', async () => {
    const { code, stdout } = await lab('list')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^R1 +lost-update, overlap +Redlock: the clock of one node jumps forward$/m)
    expect(stdout).toMatch(/^R2c +clean +/m)
    const rows = JSON.parse((await lab('list', '--json')).stdout) as { id: string }[]
    expect(rows.map(({ id }) => id)).toContain('A4g')
  })

  test('run: an expected violation is a success', async () => {
    const { code, stdout } = await lab('run', 'r1')
    expect(code).toBe(0)
    expect(stdout).toContain('overlap: C2 got L while C1 still had a valid hold of it')
    expect(stdout).toContain('violation shown, as expected')
  })

  test('run --json: prints the same result for the same seed', async () => {
    const [first, again, other] = await Promise.all([
      lab('run', 'A1g', '--json', '--seed', '7'),
      lab('run', 'A1g', '--json', '--seed', '7'),
      lab('run', 'A1g', '--json', '--seed', '8'),
    ])
    const result = JSON.parse(first.stdout) as Record<string, unknown>
    expect(result).toMatchObject({ scenario: 'A1g', seed: 7, violations: [], ok: true })
    expect(result.expected).toMatchObject({ violations: [] })
    expect(result.observed).toMatchObject({ violations: [], units: { C1: 'refused', C2: 'done' } })
    expect(result.timeline).toBeInstanceOf(Array)
    expect(result.traceHash).toMatch(/^[0-9a-f]{16}$/)
    expect(again.stdout).toBe(first.stdout)
    expect((JSON.parse(other.stdout) as Record<string, unknown>).traceHash).not.toBe(result.traceHash)
  })

  test('run FILE: runs a scenario file, and exits with 1 if it does not end as expected', async () => {
    const file = join(workshop.folder(), 'mine.json')
    const scenario = {
      id: 'mine',
      title: 'The reply comes late',
      reference: 'invented',
      system: { kind: 'redis', deadline: 'receipt' },
      clients: {
        C1: [{ do: 'acquire' }, { do: 'work', for: 4 }],
        C2: [{ do: 'wait', until: 10.5 }, { do: 'acquire' }],
      },
      faults: [{ at: 0, do: 'hold', from: 'P', to: 'C1', for: 8 }],
      until: 20,
      expect: { violations: [] },
    }
    writeFileSync(file, JSON.stringify(scenario))
    const wrong = await lab('run', file)
    expect(wrong.code).toBe(1)
    expect(wrong.stdout).toContain('violations: expected [], observed ["overlap"]')
    writeFileSync(file, JSON.stringify({ ...scenario, expect: { violations: ['overlap'] } }))
    expect((await lab('run', file)).code).toBe(0)
  })

  test('run --html: writes a page', async () => {
    const file = join(workshop.folder(), 'r1.html')
    const { code, stdout } = await lab('run', 'R1', '--html', file)
    expect([code, stdout.trim()]).toEqual([0, `R1: lost-update, overlap, as expected; the diagram is in ${file}`])
    expect(readFileSync(file, 'utf8')).toMatch(/^<!doctype html>/)
  })

  test('explains wrong usage', async () => {
    const unknown = await lab('run', 'R99')
    expect(unknown.code).toBe(64)
    expect(unknown.stderr).toContain('leasehold lab list')
    const file = join(workshop.folder(), 'bad.json')
    writeFileSync(file, '{"id":"x"}')
    const bad = await lab('run', file)
    expect([bad.code, bad.stderr]).toEqual([64, expect.stringContaining('title is a text')])
    expect((await lab('run', 'R1', '--seed', '-1')).code).toBe(64)
    expect((await lab('run', 'R1', '--html', '/nonexistent/x.html')).code).toBe(74)
  })
})
