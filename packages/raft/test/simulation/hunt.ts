// Runs in a copy of the core with a bug in it: `hunt.ts SEEDS` prints the first seed that shows it, as JSON.
import { run } from './run.js'

const seeds = Number(process.argv[2])
for (let seed = 1; seed <= seeds; seed++) {
  try {
    run(seed)
  } catch (error) {
    const why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    process.stdout.write(`${JSON.stringify({ seed, why: why.replace(/^seed \d+: /, '') })}\n`)
    break
  }
}
