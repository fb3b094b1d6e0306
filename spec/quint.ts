import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MUTANTS, type Mutant } from './mutants.js'

const folder = fileURLToPath(new URL('.', import.meta.url))
const QUINT = join(folder, 'node_modules/@informalsystems/quint/dist/src/cli.js')

export interface Model {
  readonly file: Mutant['file']
  readonly invariants: readonly string[]
  /** States that a run must reach, so that the invariants are about something. */
  readonly witnesses: readonly string[]
  readonly steps: number
  /** Runs in the tests' short share. */
  readonly samples: number
}

export const MODELS: readonly Model[] = [
  {
    file: 'locks',
    invariants: [
      'exclusion',
      'tokensGrow',
      'noSessionEndsEarly',
      'grantsAreForLiveSessions',
      'firstComeFirstServed',
      'noNeedlessWait',
      'delaysBlock',
    ],
    witnesses: ['waits', 'isShared', 'isRestored'],
    steps: 40,
    samples: 100,
  },
  {
    file: 'fencing',
    invariants: ['noUpdateLost', 'noStaleEffect'],
    witnesses: ['refusesStaleWrites'],
    steps: 40,
    samples: 300,
  },
  {
    file: 'client',
    invariants: ['deadlineFiresFirst'],
    witnesses: ['renewalsExtend', 'passed'],
    steps: 100,
    samples: 200,
  },
]

export interface Outcome {
  /** The invariants that a run has broken. */
  readonly broken: readonly string[]
  /** How many runs have reached each witness. */
  readonly witnessed: ReadonlyMap<string, number>
  readonly output: string
}

/** Simulates a model, or a mutant of it. Equal seeds give equal runs. @throws Error when Quint itself fails */
export async function simulate(
  model: Model,
  options: { readonly mutant?: Mutant; readonly samples?: number; readonly seed?: number } = {},
): Promise<Outcome> {
  const { mutant, samples = model.samples, seed = 1 } = options
  const invariants = mutant === undefined ? model.invariants : [mutant.breaks]
  const place = mkdtempSync(join(tmpdir(), 'leasehold-spec-'))
  try {
    const file = join(place, `${model.file}.qnt`)
    const text = readFileSync(join(folder, `${model.file}.qnt`), 'utf8')
    writeFileSync(file, mutant === undefined ? text : mutated(text, mutant))
    const { code, output } = await run([
      ...['run', file, '--backend=typescript', `--seed=0x${seed.toString(16)}`],
      ...[`--max-samples=${samples}`, `--max-steps=${model.steps}`],
      ...['--invariants', ...invariants, '--witnesses', ...model.witnesses],
    ])
    const named = [...output.matchAll(/❌ (\w+)/g)].map(([, name]) => name as string)
    // Quint names the broken ones only when it was given several.
    const broken = output.includes('[violation]') && named.length === 0 ? invariants : named
    if (code !== 0 && broken.length === 0) throw new Error(`quint ended with ${code}:\n${output}`)
    const witnessed = new Map(
      [...output.matchAll(/(\w+) was witnessed in (\d+) trace/g)].map(([, name, count]) => [
        name as string,
        Number(count),
      ]),
    )
    return { broken, witnessed, output }
  } finally {
    rmSync(place, { recursive: true })
  }
}

/** @throws Error when the place to change is not found exactly once */
export function mutated(text: string, { find, replace, file }: Mutant): string {
  const parts = text.split(find)
  if (parts.length !== 2) throw new Error(`${file}.qnt has ${parts.length - 1} places like this, not one: ${find}`)
  return parts.join(replace)
}

export const mutantsOf = (file: Mutant['file']): readonly Mutant[] => MUTANTS.filter((mutant) => mutant.file === file)

async function run(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [QUINT, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  return { code, output }
}
