import { parseArgs } from 'node:util'
import { cluster } from './cluster.js'
import { connections } from './connections.js'
import { engines } from './engines.js'
import { failover } from './failover.js'
import { guards } from './guards.js'
import { local } from './local.js'
import { memory } from './memory.js'
import { observe } from './observe.js'

const WORKLOADS: Record<string, (options: { rounds: number; seconds: number }) => Promise<void>> = {
  local,
  cluster,
  connections,
  engines,
  failover,
  memory,
  observe,
  guards,
}
const USAGE = `usage: npm run bench -- ${Object.keys(WORKLOADS).join('|')} [--rounds 5] [--seconds 3]`

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '3' } },
  })
  const run = WORKLOADS[positionals[0] ?? '']
  const rounds = Number(values.rounds)
  const seconds = Number(values.seconds)
  if (run === undefined || !(rounds >= 1) || !(seconds > 0)) {
    process.stderr.write(`${USAGE}\n`)
    return 64
  }
  await run({ rounds, seconds })
  return 0
}

void main().then((code) => {
  process.exitCode = code
})
