import { parseArgs } from 'node:util'
import { allWritten } from './workloads/all.js'
import { clientCpu } from './workloads/client-cpu.js'
import { cluster } from './workloads/cluster.js'
import { writeDocs } from './draw/docs.js'
import { embedded } from './workloads/embedded.js'
import { engines } from './workloads/engines.js'
import { failover } from './workloads/failover.js'
import { growthWritten } from './workloads/growth.js'
import { guards } from './workloads/guards.js'
import { lab } from './workloads/lab.js'
import { local } from './workloads/local.js'
import { memory } from './workloads/memory.js'
import { micro, microBaseline } from './workloads/micro.js'
import { observe } from './workloads/observe.js'
import { snapshotUsesWritten } from './workloads/snapshots.js'
import { turns } from './workloads/turns.js'

interface Options {
  readonly rounds: number
  readonly seconds: number
  readonly docs: boolean
  readonly only: readonly string[] | undefined
}

const WORKLOADS: Record<string, (options: Options) => unknown> = {
  all: allWritten,
  local,
  cluster,
  embedded,
  'client-cpu': clientCpu,
  growth: growthWritten,
  snapshots: snapshotUsesWritten,
  micro,
  'micro-baseline': microBaseline,
  engines,
  failover,
  memory,
  observe,
  guards,
  turns,
  lab,
  draw: () => writeDocs(),
}
const USAGE = `usage: npm run bench -- ${Object.keys(WORKLOADS).join('|')} [--rounds 5] [--seconds 3]
  all: [--only 'leasehold, one,Redis always'] [--docs]: --docs puts the figures into docs/performance.md`

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      docs: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  })
  const run = WORKLOADS[positionals[0] ?? '']
  const rounds = Number(values.rounds)
  const seconds = Number(values.seconds)
  if (run === undefined || !(rounds >= 1) || !(seconds > 0)) {
    process.stderr.write(`${USAGE}\n`)
    return 64
  }
  // A name may have a comma in it: 'leasehold, one member'.
  const only = values.only?.split(/,(?! )/)
  await run({ rounds, seconds, docs: values.docs, only })
  return 0
}

void main().then((code) => {
  process.exitCode = code
})
