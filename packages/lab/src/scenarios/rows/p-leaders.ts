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
  {
    id: 'P15b',
    title: 'The leader is replaced while a follower is still writing its snapshot',
    reference: 'a snapshot that is durable is installed, whichever member leads',
    text: 'N3 was away for long and is sent a snapshot, which its slow disk takes 3 s to write. Meanwhile N2 takes over and loses sight of N1 before anything of its term is committed: it needs N3, which has to install what it wrote for N1.',
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: {
      C1: [
        { do: 'wait', until: 1.5 },
        { do: 'client', action: 'loop', lock: 'busy', count: 200, hold: 0.005 },
      ],
      C2: [
        { do: 'wait', until: 30 },
        { do: 'client', action: 'take', wait: '30s' },
      ],
    },
    faults: [
      { at: 0.5, do: 'system', action: 'transfer', to: 'N1' },
      { at: 1, do: 'system', action: 'down', who: 'N3', for: 15 },
      { at: 16.03, do: 'system', action: 'disk', trouble: 'slow', ms: 3000, who: 'N3', for: 8 },
      { at: 16.3, do: 'system', action: 'transfer', to: 'N2' },
      { at: 16.319, do: 'cut', from: 'N1', to: ['N2', 'N3'], for: 30 },
    ],
    until: 60,
    expect: {
      ...QUIET,
      facts: { C1: { loop: { done: 200 } }, C2: { take: { outcome: 'granted', at: { atMost: 31 } } } },
      running: 3,
      lag: { atMost: 5 },
    },
  },
]
