import { parseArgs } from 'node:util'
import { allWritten } from './all.js'
import { clientCpu } from './client-cpu.js'
import { cluster } from './cluster.js'
import { writeDocs } from './draw/docs.js'
import { embedded } from './embedded.js'
import { engines } from './engines.js'
import { failover } from './failover.js'
import { growthWritten } from './growth.js'
import { guards } from './guards.js'
import { lab } from './lab.js'
import { local } from './local.js'
import { memory } from './memory.js'
import { micro, microBaseline } from './micro.js'
import { observe } from './observe.js'
import { snapshotUsesWritten } from './snapshot-uses.js'
import { turns } from './turns.js'

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
