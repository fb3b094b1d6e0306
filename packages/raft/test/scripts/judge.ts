import { argument, type Case, parseCases } from './datadriven.js'
import { World } from './world.js'

export type Level = 'state' | 'trace'

export interface Difference {
  readonly ok: false
  readonly line: number
  readonly expected: string
  readonly got: string
}

export type Verdict = { readonly ok: true; readonly compared: number } | Difference

const PROSE = /^\s*(DEBUG|INFO|WARN|ERROR|FATAL) /
/** How the scripts write that there is nothing to see. */
const SILENCE = /^\s*(ok|ok \(quiet\))?\s*$/
const STATE_DIRECTIVES = new Set(['raft-state', 'raft-log', 'status'])
const NOTHING = '(nothing more)'

/**
 * Plays a script. *trace* compares everything but the log's prose (and `ok`, which stands for silence); *state* compares
 * only the directives that show state, and so judges any correct core. A directive that cannot be played differs where it
 * stands.
 */
export function judge(text: string, level: Level): Verdict {
  const world = new World()
  let compared = 0
  let silent = false
  for (const one of parseCases(text)) {
    let got: string[]
    try {
      got = world.run(one)
    } catch (error) {
      return { ok: false, line: one.line, expected: `${one.command} to be playable`, got: (error as Error).message }
    }
    if (one.command === 'log-level') silent = isNone(one.args[0]?.key)
    // Whatever runs while the output is off shows nothing, whether or not there was something.
    const quiet = silent || isNone(argument(one, 'log-level')?.[0])
    if (quiet || (level === 'state' && !STATE_DIRECTIVES.has(one.command))) continue
    const difference = compare(one, got)
    if (typeof difference !== 'number') return difference
    compared += difference
  }
  return { ok: true, compared }
}

function isNone(level: string | undefined): boolean {
  return level?.toLowerCase() === 'none'
}

/** The number of lines that agree, all of them, or the first that does not. */
function compare(one: Case, printed: readonly string[]): number | Difference {
  const speaks = (line: string) => !PROSE.test(line) && !SILENCE.test(line)
  const got = printed.filter(speaks)
  const expected = one.expected
    .map((line, i) => ({ line, at: one.expectedLine + i }))
    .filter(({ line }) => speaks(line))
  const count = Math.max(expected.length, got.length)
  for (let i = 0; i < count; i++) {
    if (expected[i]?.line.trimEnd() === got[i]?.trimEnd()) continue
    const line = expected[i]?.at ?? one.expectedLine + one.expected.length
    return { ok: false, line, expected: expected[i]?.line ?? NOTHING, got: got[i] ?? NOTHING }
  }
  return count
}
