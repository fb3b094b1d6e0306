import type { Scenario } from '../format.js'
import { ARTICLE, unit } from './common.js'

export const a1g: Scenario = {
  id: 'A1g',
  title: 'A pause after the check, and a guarded resource',
  reference: `${ARTICLE} (making the lock safe with fencing)`,
  text: 'The same pause as in A1. The resource keeps the greatest token that it has seen and refuses the late write.',
  system: { kind: 'leasehold' },
  resources: { G: { kind: 'G' } },
  clients: { C1: unit({ work: 1 }), C2: unit({ from: 2 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 15 }],
  until: 20,
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { G: 1 } },
}
