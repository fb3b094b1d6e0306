import { describe, expect, it } from 'vitest'
import { FolderWatch } from '../../src/storage/folder-watch.js'
import type { FolderState } from '../../src/platform.js'

class Bench {
  now = 0
  readonly said: string[] = []
  /** Checks that have not returned yet. */
  readonly open: ((state: FolderState) => void)[] = []
  stopped: (Error & { hint?: string }) | undefined
  readonly watch: FolderWatch

  constructor() {
    const say = (level: string) => (message: string) => this.said.push(`${level}: ${message}`)
    this.watch = new FolderWatch({
      path: '/data',
      clock: { wallMs: () => 0, monotonicMs: () => this.now, after: () => () => {} },
      log: { info: say('info'), warn: say('warn'), error: say('error') },
      check: (done) => this.open.push(done),
      guard: (action) => {
        try {
          action()
        } catch (error) {
          this.stopped ??= error as Error
        }
      },
    })
  }

  /** Ticks for `ms`, and answers every check with `state`. */
  run(ms: number, state?: FolderState): void {
    for (const end = this.now + ms; this.now < end; this.now += 50) {
      this.watch.tick()
      if (state) for (const done of this.open.splice(0)) done(state)
    }
  }
}

const OWN: FolderState = { kind: 'own' }
const LOST: FolderState = { kind: 'lost', why: '/data is gone' }
const FAILING: FolderState = { kind: 'failing', why: 'ESTALE' }
const UNKNOWN: FolderState = { kind: 'unknown', why: 'EMFILE' }

describe('the watch over the data folder', () => {
  it('checks once a second, with at most one check at a time', () => {
    const bench = new Bench()
    bench.run(100)
    expect(bench.open).toHaveLength(1)
    bench.run(4000)
    expect(bench.open).toHaveLength(1)
    bench.open.splice(0)[0]?.(OWN)
    let checks = 0
    for (let second = 0; second < 10; second++) {
      bench.run(1000)
      checks += bench.open.length
      for (const done of bench.open.splice(0)) done(OWN)
    }
    expect(checks).toBe(10)
    expect(bench.said).toEqual([])
  })

  it('stops the member at once when the folder is lost, with a hint', () => {
    const bench = new Bench()
    bench.run(2000, OWN)
    bench.run(1000, LOST)
    expect(bench.stopped).toMatchObject({
      code: 'storage',
      message: '/data is gone',
      hint: expect.stringContaining('Bring the folder back'),
    })
    expect(bench.said).toEqual(['error: the data folder is lost'])
  })

  it('survives a device that fails for less than 3 s, and stops the member after 3 s', () => {
    const bench = new Bench()
    bench.run(2500, FAILING)
    expect(bench.watch.problem).toBe('/data fails: ESTALE')
    bench.run(2000, OWN)
    expect(bench.watch.problem).toBeUndefined()
    bench.run(2500, FAILING)
    // A failed check changes nothing.
    bench.run(1000, UNKNOWN)
    expect(bench.stopped).toBeUndefined()
    bench.run(1000, FAILING)
    expect(bench.stopped).toMatchObject({ code: 'storage', message: 'the disk of /data has failed for 3 s: ESTALE' })
  })

  it('warns once when the check itself fails', () => {
    const bench = new Bench()
    bench.run(10_000, UNKNOWN)
    // An intermittent fault does not flood the log either.
    for (let i = 0; i < 10; i++) {
      bench.run(1000, OWN)
      bench.run(1000, UNKNOWN)
    }
    expect(bench.stopped).toBeUndefined()
    expect(bench.said.filter((text) => text.startsWith('warn'))).toEqual(['warn: the data folder cannot be checked'])
    expect(bench.watch.problem).toBeUndefined()
    bench.run(1000, OWN)
    bench.run(60_000, UNKNOWN)
    expect(bench.said.filter((text) => text.startsWith('warn'))).toHaveLength(2)
  })

  it('reports a hanging check once, and its return', () => {
    const bench = new Bench()
    bench.run(4900)
    expect([bench.said, bench.watch.problem]).toEqual([[], undefined])
    bench.run(20_000)
    expect(bench.said).toEqual(['warn: the data folder does not answer: its file system hangs'])
    expect(bench.watch.problem).toBe('the check of /data has not returned for 24 s')
    expect(bench.stopped).toBeUndefined()
    bench.run(50, OWN)
    expect(bench.said.at(-1)).toBe('info: the data folder answers again')
    expect(bench.watch.problem).toBeUndefined()
  })

  it('answers concurrent callers with one check', () => {
    const bench = new Bench()
    const answers: number[] = []
    bench.watch.check(() => answers.push(1))
    bench.watch.check(() => answers.push(2))
    expect(bench.open).toHaveLength(1)
    bench.open.splice(0)[0]?.(OWN)
    expect(answers).toEqual([1, 2])
  })
})
