// npm run guards:attack -- [--store redis|fs|register] [--units N] [--seed N]: sixteen processes at one resource, with and without its guard.
import { parseArgs } from 'node:util'
import { type Store, STORES, attackOn } from './targets.js'

const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    units: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
  },
})
const stores = values.store === undefined ? STORES : [values.store as Store]
for (const store of stores) {
  if (!STORES.includes(store)) throw new Error(`--store is one of ${STORES.join(', ')}, not ${store}`)
  for (const guarded of [true, false]) {
    const start = performance.now()
    const options = { guarded, units: Number(values.units), seed: Number(values.seed) }
    const result = await attackOn(store, options)
    const lost = result.acknowledged - result.value
    const seconds = Math.round((performance.now() - start) / 100) / 10
    console.log(JSON.stringify({ store, ...options, ...result, lost, seconds }))
    // Units whose outcome is unknown may count, or not.
    if (guarded && (lost > 0 || lost < -result.unknown)) process.exitCode = 1
  }
}
