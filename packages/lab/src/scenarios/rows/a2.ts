import type { Scenario } from '../format.js'
import { ARTICLE, unit } from './common.js'

export const a2: Scenario = {
  id: 'A2',
  title: 'A write that the network keeps for 90 seconds, at a guarded resource',
  reference: `${ARTICLE} (GitHub's 90-second packet delay)`,
  text: 'C1 sends its write in time and crashes. The network delivers it when C2 has long been at work: refused.',
  system: { kind: 'leasehold' },
  resources: { G: { kind: 'G' } },
  clients: { C1: unit({ work: 1 }), C2: unit({ from: 3 }) },
  faults: [
    { at: 0, do: 'hold', from: 'C1', to: 'G', label: 'write', for: 90 },
    { at: 2, who: 'C1', do: 'kill' },
  ],
  until: 100,
  expect: { violations: [], units: { C1: 'unfinished', C2: 'done' }, values: { G: 1 } },
}
