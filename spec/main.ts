import { parseArgs } from 'node:util'
import { MODELS, mutantsOf, simulate } from './quint.js'
import { exhaust, hasSpin } from './spin.js'

// npm run spec -- [--samples N] [--seed N]: simulates the specification for longer than the tests do, and exhausts the
// models of Spin. Exit 1 when a promise is broken or a mutant survives.
const { values } = parseArgs({ options: { samples: { type: 'string' }, seed: { type: 'string', default: '2' } } })
let failed = 0

function report(what: string, ok: boolean, since: number): void {
  if (!ok) failed += 1
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${what} (${Math.round((performance.now() - since) / 1000)} s)`)
}

for (const model of MODELS) {
  const samples = values.samples === undefined ? model.samples * 10 : Number(values.samples)
  let since = performance.now()
  const { broken, witnessed, output } = await simulate(model, { samples, seed: Number(values.seed) })
  const seen = [...witnessed].map(([name, count]) => `${name} ${count}`).join(', ')
  report(`${model.file}: ${samples} runs of ${model.steps} steps; seen: ${seen}`, broken.length === 0, since)
  if (broken.length > 0) console.log(output)
  for (const mutant of mutantsOf(model.file)) {
    since = performance.now()
    const found = (await simulate(model, { mutant, samples: 3_000, seed: Number(values.seed) })).broken
    report(`${model.file} loses ${mutant.breaks} when ${mutant.why}`, found.length > 0, since)
  }
}

if (!hasSpin()) console.log('skipped: the models of Spin (Spin or a C compiler is not installed)')
else {
  for (const [model, bound] of [
    ['fencing', 'HOLDS=4,UNITS=3'],
    ['handover', 'MOVES=5'],
  ] as const) {
    const since = performance.now()
    const { errors, complete, states } = exhaust(model, bound.split(','))
    report(`${model}.pml: ${states} states with ${bound}, exhausted`, errors === 0 && complete, since)
  }
}
process.exitCode = failed > 0 ? 1 : 0
