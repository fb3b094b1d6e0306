import type { Scenario } from '../format.js'
import { cluster, QUIET } from './common-cluster.js'

const LOCKS = ['a', 'b', 'c', 'd', 'e', 'f'] as const
const down = (who: string) => ({ at: 7, do: 'system', action: 'down', who, for: 15 }) as const

export const LEADERS_ROWS: readonly Scenario[] = [
  {
    id: 'P22',
    title: 'A member leads once more, and one that had followed it then has not come back yet',
    reference: 'Raft, figure 2: nextIndex and matchIndex begin anew after each election',
    text: 'N1 and N2 are cut off with a tail that nobody else has. N1 comes back and leads again, and knows nothing of what N2 has now: what only N1 and N3 have is not committed.',
    system: cluster({ members: 5, urls: { C1: ['N1'] } }),
    clients: {
      C1: [
        { do: 'wait', until: 1 },
        { do: 'client', action: 'take', ttl: '1m' },
        ...LOCKS.flatMap(
          (lock, i) =>
            [
              { do: 'wait', until: 2.1 + i / 10 },
              { do: 'client', action: 'take', lock, as: lock, wait: '1m', ttl: '1m', background: true },
            ] as const,
        ),
      ],
      C2: [
        { do: 'wait', until: 10 },
        { do: 'client', action: 'take', lock: 'g' },
      ],
    },
    faults: [
      { at: 0.5, do: 'system', action: 'transfer', to: 'N1' },
      { at: 2, do: 'cut', from: ['N1', 'C1'], to: ['N3', 'N4', 'N5'], for: 3 },
      { at: 2, do: 'cut', from: 'N2', to: ['N3', 'N4', 'N5'], for: 5 },
      { at: 4.9, do: 'cut', from: 'N2', to: 'N1', for: 30 },
      { at: 5, do: 'cut', from: 'C1', to: ['N3', 'N4', 'N5'], for: 30 },
      { at: 5.5, do: 'system', action: 'transfer', to: 'N1' },
      { at: 5.8, do: 'cut', from: ['N1', 'N3'], to: ['N4', 'N5'], for: 30 },
      down('N1'),
      down('N3'),
    ],
    until: 60,
    expect: {
      ...QUIET,
      facts: { C2: { take: { outcome: 'granted', at: { atMost: 11 } } } },
      running: 5,
    },
  },
]
