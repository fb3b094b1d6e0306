import type { Scenario } from '../format.js'
import { ARTICLE, unit } from './common.js'

export const r4: Scenario = {
  id: 'R4',
  title: 'Redlock: a pause after step 3',
  reference: `${ARTICLE} (no check can be made after the last check)`,
  text: 'C1 has a valid lease, reads, and is paused. Its lease ends as it should, C2 has its turn, C1 wakes and writes. No step of the algorithm comes after step 3.',
  system: { kind: 'redlock' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ check: false }), C2: unit({ from: 10.5 }) },
  faults: [{ at: 'C1 after read', do: 'pause', for: 12 }],
  until: 16,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

export const r4check: Scenario = {
  ...r4,
  id: 'R4check',
  title: 'Redlock: a pause after a check that the algorithm does not ask for',
  text: 'C1 is more careful than the algorithm and looks at its validity right before the write. The pause comes after that look.',
  clients: { C1: unit(), C2: unit({ from: 10.5 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 12 }],
}
