import { parseCases } from './datadriven.js'
import { World } from './world.js'

export type Level = 'state' | 'trace'

export type Verdict = { readonly ok: true; readonly compared: number } | { readonly ok: false; readonly line: number; readonly expected: string; readonly got: string }

const PROSE = /^\s*(DEBUG|INFO|WARN|ERROR|FATAL) /
const STATE_DIRECTIVES = new Set(['raft-state', 'raft-log', 'status'])

/**
 * Plays a script. *trace* compares everything but the log's prose (and `ok`, which stands for silence); *state* compares
 * only the directives that show state, and so judges any correct core.
 */
export function judge(text: string, level: Level): Verdict {
  const world = new World()
  let compared = 0
  let silent = false
  for (const one of parseCases(text)) {
    const got = world.run(one).filter((line) => !PROSE.test(line))
    if (one.command === 'log-level') silent = one.args[0]?.key === 'none'
    const quiet = silent || (one.args.find((arg) => arg.key === 'log-level')?.values[0] === 'none')
    if (level === 'state' && !STATE_DIRECTIVES.has(one.command)) continue
    if (quiet && !STATE_DIRECTIVES.has(one.command)) continue
    const expected = one.expected.map((line, i) => ({ line, at: one.expectedLine + i })).filter(({ line }) => !PROSE.test(line) && line !== 'ok' && line.trim() !== '')
    for (let i = 0; i < Math.max(expected.length, got.length); i++) {
      compared++
      if (expected[i]?.line.trimEnd() !== got[i]?.trimEnd()) {
        return { ok: false, line: expected[i]?.at ?? one.expectedLine + one.expected.length, expected: expected[i]?.line ?? '(nothing more)', got: got[i] ?? '(nothing more)' }
      }
    }
  }
  return { ok: true, compared }
}
