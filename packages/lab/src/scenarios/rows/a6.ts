import type { Scenario } from '../format.js'
import { ARTICLE, unit } from './common.js'

export const a6: Scenario = {
  id: 'A6',
  title: 'A lease much shorter than the work, and no renewal gets through',
  reference: `${ARTICLE} (the lock has a timeout)`,
  text: 'C1 is told before its lease ends that it is lost, and gives the unit up; C2 goes on. Nothing is lost.',
  system: { kind: 'leasehold', ttl: 1, margin: 0.1 },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 0.5 }) },
  faults: [{ at: 0.1, do: 'cut', from: 'C1', to: ['N1', 'N2', 'N3'] }],
  until: 10,
  expect: {
    violations: [],
    units: { C1: 'lost', C2: 'done' },
    values: { R: 1 },
    beliefOverlapMs: 0,
    grants: { C2: [{ atLeast: 1, atMost: 2.5 }] },
  },
}
