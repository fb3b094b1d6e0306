import type { Scenario } from '../format.js'
import { ARTICLE, unit } from './common.js'

export const a3: Scenario = {
  id: 'A3',
  title: 'A pause between the local check and the send',
  reference: `${ARTICLE} (you cannot fix this by checking the expiry just before the write)`,
  text: 'C1 looks at its lease 10 ms before its local deadline: still good. Then it is paused. A local check is not safety; the guard is.',
  system: { kind: 'leasehold' },
  resources: { G: { kind: 'G' } },
  clients: { C1: unit({ work: 8.95, acquire: { renew: false } }), C2: unit({ from: 2 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 20 }],
  until: 40,
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { G: 1 } },
}
