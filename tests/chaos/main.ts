// npm run chaos -- --minutes N [--seed N] [--members 3|5] [--clients N] [--engine postgres]
import { parseArgs } from 'node:util'
import { engineChaos } from './engines/main.js'
import { runChaos } from './run.js'

const SEED_MAX = 2 ** 31 - 1

function numberOf(text: string, what: string, least: number, most: number): number {
  const value = Number(text)
  if (!(value >= least && value <= most))
    throw new RangeError(`--${what} is a number from ${least} to ${most}, not ${text}`)
  return value
}

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 1_000_000)) },
    members: { type: 'string', default: '3' },
    clients: { type: 'string', default: '2' },
    engine: { type: 'string' },
  },
})
const seed = numberOf(values.seed, 'seed', 1, SEED_MAX)
const members = numberOf(values.members, 'members', 3, 5)
const minutes = numberOf(values.minutes, 'minutes', 0.1, 24 * 60)
const clients = numberOf(values.clients, 'clients', 1, 16)
const begun = performance.now()
const say = (line: string): void =>
  console.log(`${((performance.now() - begun) / 1000).toFixed(1).padStart(7)}  ${line}`)

const { engine } = values
console.log(`chaos: seed ${seed}, ${engine ?? `${members} members`}, ${minutes} minutes`)
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stop.abort(new Error(`stopped by ${signal}`)))
}
const result =
  engine === undefined
    ? await runChaos({ seed, members, durationMs: minutes * 60_000, clients, say, signal: stop.signal })
    : await engineChaos({ engine, seed, minutes, clients, say })
console.log()
console.log(`${result.operations} operations judged`)
for (const line of result.summary) console.log(line)
if (result.problems.length === 0) console.log('all checks hold')
else {
  console.log(`${result.problems.length} problems; the folder is kept: ${result.folder}`)
  const of = engine === undefined ? `--members ${members}` : `--engine ${engine}`
  console.log(`again: npm run chaos -- --minutes ${minutes} --seed ${seed} ${of} --clients ${clients}`)
}
process.exit(result.problems.length === 0 ? 0 : 1)
