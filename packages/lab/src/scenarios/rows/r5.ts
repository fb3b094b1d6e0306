import type { Scenario } from '../format.js'
import { ARTICLE, unit } from './common.js'

export const r5: Scenario = {
  id: 'R5',
  title: 'Redlock: a write that the network keeps for 90 seconds',
  reference: `${ARTICLE} (the network delays a request)`,
  text: 'C1 writes while its lease is valid. The write arrives when C2 is long done, and there is no number that could tell the resource which is which.',
  system: { kind: 'redlock' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit(), C2: unit({ from: 10.5 }) },
  faults: [{ at: 0, do: 'hold', from: 'C1', to: 'U', label: 'write', for: 90 }],
  until: 100,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}
