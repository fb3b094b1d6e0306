// npm run fuzz -- [--inputs 1000000] [--seed N] [--target TEXT]: every decoder of bytes that strangers send.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parseArgs } from 'node:util'
import { fuzz } from './fuzz.js'
import { TARGETS } from './targets.js'

setFlagsFromString('--expose-gc')
globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    target: { type: 'string', default: '' },
    from: { type: 'string', default: '0' },
  },
})
const [inputs, seed, from] = [Number(values.inputs), Number(values.seed), Number(values.from)]
if (!(inputs >= 1) || !Number.isInteger(seed) || !(from >= 0))
  throw new RangeError('--inputs, --seed and --from are numbers')
let failed = 0
for (const target of TARGETS.filter(({ name }) => name.includes(values.target))) {
  const begun = performance.now()
  const { refused, slowestMs, grownBytes, problem, inputs: done } = fuzz(target, inputs, seed, from)
  const seconds = ((performance.now() - begun) / 1000).toFixed(1)
  const figures = `${done} inputs, ${refused} refused, slowest ${slowestMs.toFixed(1)} ms, ${(grownBytes / 2 ** 20).toFixed(1)} MiB stayed`
  console.log(`${problem === undefined ? 'ok  ' : 'FAIL'} ${target.name}: ${figures} (${seconds} s)`)
  if (problem !== undefined) {
    failed++
    console.log(
      `     ${problem}\n     again: npm run fuzz -- --target '${target.name}' --seed ${seed} --from N --inputs 1`,
    )
  }
}
process.exitCode = failed === 0 ? 0 : 1
