import type { Scenario } from '../format.js'
import { unit } from './common.js'
import { cluster, QUIET } from './common-cluster.js'

const p21: Scenario = {
  id: 'P21',
  title: 'A lock moves to another service, which was founded under a higher epoch',
  reference: 'the epoch is in the high bits of every token',
  text: 'The second service starts at its first entry, and yet its tokens are above all of the first. C1, which the first has granted, writes too late and is refused.',
  system: cluster({ epoch: 1, successor: { epoch: 2, clients: ['D1', 'D2'] } }),
  resources: { R: { kind: 'G*' } },
  clients: {
    // Entries and tokens of the first service.
    C2: [{ do: 'client', action: 'loop', lock: 'busy', count: 50, hold: 0.005 }, ...unit()],
    C1: unit({ from: 5 }),
    D1: unit({ from: 10 }),
    D2: unit({ from: 22 }),
  },
  faults: [
    { at: 'C1 in write', do: 'pause', for: 15 },
    // The first service is switched off before the lock moves.
    ...['N1', 'N2', 'N3'].map((who) => ({ at: 8, do: 'kill', who }) as const),
  ],
  until: 30,
  expect: {
    ...QUIET,
    units: { C1: 'refused', C2: 'done', D1: 'done', D2: 'done' },
    values: { R: 3 },
    epoch: 1,
  },
}

export const P21_ROWS: readonly Scenario[] = [
  p21,
  {
    ...p21,
    id: 'P21e',
    title: 'A lock moves to another service, founded under the same epoch: its tokens go back',
    text: 'The second service counts from 1 again. Its holder is refused by the guard, which has seen more, and the late write of C1 is taken.',
    system: cluster({ epoch: 1, successor: { epoch: 1, clients: ['D1', 'D2'] } }),
    expect: {
      violations: ['invariant', 'token-order'],
      units: { C1: 'done', C2: 'done', D1: 'refused', D2: 'refused' },
      values: { R: 2 },
    },
  },
]
