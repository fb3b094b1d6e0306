import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Inode } from '../../src/cluster/disk/inode.js'
import { type CommandIo, exploreCommand, replayCommand } from '../../src/fuzz/explore-command.js'
import { parseScenario } from '../../src/scenarios/parse.js'
import { runScenario } from '../../src/scenarios/run-scenario.js'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-lab-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
})

function io(): CommandIo & { readonly lines: string[]; readonly notes: string[] } {
  const lines: string[] = []
  const notes: string[] = []
  return { lines, notes, print: (line) => lines.push(line), note: (line) => notes.push(line), stopping: () => false }
}

/** The first seed of a range in which a disk that lies about its syncs shows. */
const LYING = { seeds: '1..40', profile: 'storage' }

describe('lab explore and lab replay', () => {
  it('keep their progress in a file, and continue from it', { timeout: 300_000 }, async () => {
    const state = join(folder, 'state.json')
    const first = io()
    expect(await exploreCommand({ seeds: '1..2', profile: 'calm', state, json: true }, first)).toBe(0)
    expect(JSON.parse(first.lines[0] as string)).toMatchObject({ seeds: 2 })
    const second = io()
    expect(await exploreCommand({ seeds: '1..3', profile: 'calm', state, json: true }, second)).toBe(0)
    expect(JSON.parse(second.lines[0] as string)).toMatchObject({ seeds: 3 })
    expect(second.notes.join()).toContain('seeds left')
    await expect(exploreCommand({ seeds: '1..3', profile: 'swarm', state }, io())).rejects.toThrow('is of profile calm')
  })

  it('say what is broken, and write a scenario that lab run plays', { timeout: 300_000 }, async () => {
    const out = join(folder, 'found.json')
    vi.spyOn(Inode.prototype, 'sync').mockImplementation(() => {})
    const told = io()
    expect(await exploreCommand({ ...LYING, out }, told)).toBe(1)
    const text = told.lines.join('\n')
    expect(text).toMatch(/^seed \d+, profile storage, commit /)
    expect(text).toMatch(/replay: npx leasehold lab replay --seed \d+ --profile storage/)
    expect(text).toContain(`clients: ${out}`)
    const scenario = parseScenario(readFileSync(out, 'utf8'))
    const broken = await runScenario(scenario)
    expect(broken).toMatchObject({ ok: false, observed: { violations: ['invariant'] } })
    const replayed = io()
    expect(await replayCommand({ file: out }, replayed)).toBe(1)
    expect(replayed.lines.at(-1)).toContain(`trace ${broken.traceHash}`)
    vi.restoreAllMocks()
    expect(await runScenario(scenario)).toMatchObject({ ok: true })
    expect(await replayCommand({ file: out }, io())).toBe(0)
  })

  it('refuse what they do not know', async () => {
    await expect(exploreCommand({ seeds: '9..1' }, io())).rejects.toThrow('--seeds is A..B')
    await expect(exploreCommand({ seeds: '1', profile: 'wild' }, io())).rejects.toThrow('--profile is one of swarm')
    await expect(exploreCommand({ seeds: '1', members: '0' }, io())).rejects.toThrow('--members is 1 to 9')
    await expect(replayCommand({}, io())).rejects.toThrow('give --seed N, or a file')
  })
})
