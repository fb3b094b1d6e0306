// npm run soak -- [--clients N] [--acquires N] [--seed N] [--kind stream|worker|http]
import { parseArgs } from 'node:util'
import { soak } from './run.js'

const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '1000' },
    acquires: { type: 'string', default: '100' },
    kind: { type: 'string', default: 'stream' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 1_000_000)) },
  },
})
const [clients, acquires, seed] = [values.clients, values.acquires, values.seed].map((text) => {
  const number = Number(text)
  if (!(Number.isSafeInteger(number) && number >= 1 && number <= 1_000_000)) {
    throw new RangeError(`a number from 1 to 1000000, not ${text}`)
  }
  return number
}) as [number, number, number]

const { kind } = values
if (kind !== 'stream' && kind !== 'worker' && kind !== 'http') {
  throw new RangeError(`--kind is stream, worker or http, not ${kind}`)
}
console.log(`soak: ${clients} clients × ${acquires} acquires, seed ${seed}`)
const result = await soak({ clients, acquires, seed, kind, cutEveryMs: 250, cutShare: 0.02 })
console.log(`${result.seconds.toFixed(1)} s, ${result.cuts} connections cut`)
for (const [what, times] of Object.entries(result.tally)) console.log(`${String(times).padStart(9)}  ${what}`)
for (const problem of result.problems.slice(0, 50)) console.log(`problem: ${problem}`)
console.log(result.problems.length === 0 ? 'nothing is left over' : `${result.problems.length} problems`)
process.exit(result.problems.length === 0 ? 0 : 1)
