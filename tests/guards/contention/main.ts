import { parseArgs } from 'node:util'
import { contend, type Outcome, WAYS, type Way } from './contention.js'
import { KINDS } from './stores.js'

const CONNECTIONS = 16
const USAGE = `usage: npm run guards:contention -- [--units 10000] [--seed 1] [--store NAME] [--way ${WAYS.join('|')}]
stores: ${KINDS.map((kind) => kind.name).join(', ')}`

/** Whether a way of writing did what it is known for: guards lose nothing, and everything else loses units. */
function isAsExpected(way: Way, { units, acknowledged, refused, value }: Outcome): boolean {
  if (way === 'table' || way === 'row') return value === acknowledged && acknowledged + refused === units
  return value < acknowledged
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      units: { type: 'string', default: '10000' },
      seed: { type: 'string', default: '1' },
      store: { type: 'string' },
      way: { type: 'string' },
    },
  })
  const [units, seed] = [Number(values.units), Number(values.seed)]
  const kinds = KINDS.filter((kind) => values.store === undefined || kind.name === values.store)
  const ways = WAYS.filter((way) => values.way === undefined || way === values.way)
  if (!(units >= 1) || !Number.isSafeInteger(seed) || kinds.length === 0 || ways.length === 0) {
    process.stderr.write(`${USAGE}\n`)
    return 64
  }
  let wrong = 0
  for (const kind of kinds) {
    const store = await kind.start(CONNECTIONS)
    try {
      for (const way of ways) {
        if (kind.needs === undefined && way !== 'table' && way !== 'unguarded') continue
        const outcome = await contend(store, way, units, seed)
        const asExpected = isAsExpected(way, outcome)
        if (!asExpected) wrong++
        console.log(JSON.stringify({ store: kind.name, way, seed, ...outcome, asExpected }))
      }
    } finally {
      await store.stop()
    }
  }
  return wrong > 0 ? 1 : 0
}

void main().then((code) => {
  process.exitCode = code
})
