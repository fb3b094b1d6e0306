import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))

/** Whether Spin and a C compiler are here. */
export function hasSpin(): boolean {
  return ['spin', 'cc'].every((program) => spawnSync(program, [program === 'spin' ? '-V' : '--version']).status === 0)
}

export interface Verdict {
  readonly errors: number
  readonly states: number
  /** Every state was reached: nothing was cut off by a bound of the search. */
  readonly complete: boolean
  readonly output: string
}

/** Searches every state of a model. `defines`: bounds, and the names of mutants in the model's text. */
export function exhaust(model: 'fencing' | 'handover', defines: readonly string[] = []): Verdict {
  const cwd = mkdtempSync(join(tmpdir(), 'leasehold-spin-'))
  try {
    copyFileSync(join(folder, `${model}.pml`), join(cwd, 'model.pml'))
    execFileSync('spin', [...defines.map((define) => `-D${define}`), '-a', 'model.pml'], { cwd, stdio: 'pipe' })
    execFileSync('cc', ['-O2', '-w', '-DSAFETY', '-DCOLLAPSE', '-o', 'pan', 'pan.c'], { cwd, stdio: 'pipe' })
    const output = execFileSync('./pan', ['-m100000'], { cwd, encoding: 'utf8' })
    return {
      errors: numberIn(output, /errors: (\d+)/),
      states: numberIn(output, /(\d+) states, stored/),
      complete: !/max search depth too small|error: max|out of memory/i.test(output),
      output,
    }
  } finally {
    rmSync(cwd, { recursive: true })
  }
}

function numberIn(text: string, pattern: RegExp): number {
  const found = pattern.exec(text)?.[1]
  if (found === undefined) throw new Error(`Spin did not print ${pattern}:\n${text}`)
  return Number(found)
}
