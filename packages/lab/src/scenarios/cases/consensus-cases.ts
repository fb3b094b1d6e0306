import type { Scenario } from '../format.js'
import { acquireFrom, busy, cluster, ETCD, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

const down = (at: number, who: string, forSeconds: number) =>
  ({ at, do: 'system', action: 'down', who, for: forSeconds }) as const
const die = (at: number, who: string, nth: number, forSeconds = 2) =>
  ({ at, do: 'system', action: 'dieAtEffect', who, nth, for: forSeconds }) as const
const change = (at: number, action: 'add' | 'promote' | 'remove', who: string) =>
  ({ at, do: 'system', action, who }) as const

export const CONSENSUS_CASES: readonly Scenario[] = [
  {
    id: 'P1',
    title: 'A leader that is cut off says nothing as a leader any more',
    reference: 'reads and renewals need a quorum that confirms leadership',
    system: cluster({ urls: { C1: ['leader'] } }),
    clients: {
      C1: [
        { do: 'client', action: 'get', key: 'k', as: 'before' },
        { do: 'wait', until: 3 },
        { do: 'client', action: 'take', wait: 0 },
      ],
      C2: [
        { do: 'wait', until: 5 },
        { do: 'client', action: 'take', wait: '1m' },
      ],
    },
    // C1 sees the old leader only.
    faults: [
      { at: 2, do: 'cut', from: 'leader', to: ['follower1', 'follower2', 'C2'], for: 30 },
      { at: 2, do: 'cut', from: 'C1', to: ['follower1', 'follower2'], for: 30 },
    ],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      order: { L: ['C2'] },
      facts: { C1: { before: { value: null } }, C2: { take: { outcome: 'granted' } } },
    },
  },
  {
    id: 'P2',
    title: 'A read at a leader that was elected just now waits for its first entry',
    reference: `${ETCD}/7331`,
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'put', key: 'k', value: 'new', ifVersion: '0' }],
      C2: [
        { do: 'wait', until: 1.0 },
        { do: 'client', action: 'get', key: 'k' },
      ],
      C3: [
        { do: 'wait', until: 1.02 },
        { do: 'client', action: 'get', key: 'k' },
      ],
      C4: [
        { do: 'wait', until: 1.05 },
        { do: 'client', action: 'get', key: 'k' },
      ],
    },
    faults: [{ at: 1, do: 'system', action: 'transfer', to: 'follower1' }],
    until: 10,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C2: { get: { value: 'new' } }, C3: { get: { value: 'new' } }, C4: { get: { value: 'new' } } },
      terms: 2,
    },
  },
  {
    id: 'P2f',
    title: 'A member that has led answers reads with what was acknowledged meanwhile, or waits until it knows it',
    reference: 'thesis 6.4: a read at a follower waits for the index that the leader confirms',
    text: 'C2 has no session, and stays with the member. Its disk is slow: what the others have committed is applied late there.',
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'put', key: 'k', value: 'old', ifVersion: '0' }],
      C2: [
        { do: 'wait', until: 0.5 },
        { do: 'client', action: 'get', key: 'k', as: 'before' },
        { do: 'wait', until: 2.2 },
        { do: 'client', action: 'get', key: 'k' },
      ],
      C3: [
        { do: 'wait', until: 2 },
        { do: 'client', action: 'get', key: 'k' },
        { do: 'client', action: 'put', key: 'k', value: 'new', ifVersion: 'seen' },
      ],
    },
    faults: [
      { at: 1, do: 'system', action: 'transfer', to: 'follower1' },
      // The first leader is the member that is asked.
      { at: 1, do: 'system', action: 'disk', trouble: 'slow', ms: 1000, who: 'leader', for: 5 },
    ],
    until: 10,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C2: { before: { value: 'old' }, get: { value: 'new', at: { atLeast: 2.5 } } },
        C3: { put: { done: true, at: { atMost: 2.2 } } },
      },
      terms: 2,
    },
  },
  {
    id: 'P3',
    title: 'A leader is paused in the middle of a read, and another one has written when it wakes',
    reference: `${ETCD}/20418`,
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'put', key: 'k', value: 'old', ifVersion: '0' },
        { do: 'wait', until: 3 },
        { do: 'client', action: 'get', key: 'k' },
        { do: 'client', action: 'put', key: 'k', value: 'new', ifVersion: 'seen' },
      ],
      C2: [
        { do: 'client', action: 'get', key: 'none', as: 'warm' },
        { do: 'wait', until: 0.99 },
        { do: 'client', action: 'get', key: 'k', as: 'first' },
      ],
      C3: [
        { do: 'wait', until: 10 },
        { do: 'client', action: 'get', key: 'k' },
      ],
    },
    faults: [{ at: 1, do: 'pause', who: 'leader', for: 8 }],
    until: 20,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { put: { done: true } }, C3: { get: { value: 'new' } } },
      terms: { atLeast: 2 },
    },
  },
  {
    id: 'P5',
    title: 'A member that receives nothing, but can send: it does not disturb the leader',
    reference: 'https://blog.cloudflare.com/a-byzantine-failure-in-the-real-world/; pre-vote',
    system: cluster(),
    clients: { C1: holdUntil(290) },
    faults: [{ at: 1, do: 'cut', from: ['leader', 'follower2'], to: 'follower1', oneWay: true, for: 300 }],
    until: 300,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, terms: { atMost: 2 } },
  },
  {
    id: 'P6',
    title: 'Two members do not see each other, both see the third',
    reference: 'https://blog.cloudflare.com/a-byzantine-failure-in-the-real-world/',
    system: cluster(),
    clients: {
      C1: [
        { do: 'wait', until: 8 },
        { do: 'client', action: 'loop', count: 50 },
      ],
    },
    faults: [{ at: 1, do: 'cut', from: 'leader', to: 'follower1', for: 100 }],
    until: 40,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 50 } } }, terms: { atMost: 3 } },
  },
  {
    id: 'P7',
    title: 'Leaders die between writing, sending and committing, term after term',
    reference: 'Raft, figure 8: an entry of an earlier term is not committed by counting',
    system: cluster({ members: 5, settings: { electionTicks: 8 } }),
    clients: { C1: busy(150) },
    faults: [2, 3.5, 5, 6.5, 8, 9.5, 11, 12.5].map((at, i) => die(at, 'leader', 2 + 3 * i, 2)),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 150 } } }, terms: { atLeast: 5 }, running: 5 },
  },
  {
    id: 'P8',
    title: 'A voter loses power before its vote is on the disk, and is asked again',
    reference: 'no vote before it is on the disk',
    system: cluster({ disk: { loss: 1000, kept: 0 } }),
    clients: { C1: busy(100) },
    // The leader goes, and the voters die at one of their next effects each.
    faults: [2, 6, 10, 14].flatMap((at, i) => [
      down(at, 'leader', 3),
      die(at + 0.1, 'follower1', 1 + i, 0.2),
      die(at + 0.2, 'follower2', 2 + i, 0.2),
    ]),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 100 } } }, running: 3 },
  },
  {
    id: 'P9',
    title: 'Two leaders change the membership, the first one without a quorum',
    reference: 'https://groups.google.com/g/raft-dev/c/t4xj6dJTP6E',
    system: cluster(),
    clients: { C1: busy(50, 12) },
    faults: [
      { at: 1, do: 'cut', from: 'leader', to: ['follower1', 'follower2'], for: 8 },
      change(1.1, 'add', 'N4'),
      change(6, 'add', 'N5'),
      change(12, 'promote', 'N5'),
    ],
    until: 40,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 50 } } }, voters: ['N1', 'N2', 'N3', 'N5'] },
  },
  {
    id: 'P10',
    title: 'From three members to five and back, with a crash of the leader at each step',
    reference: 'https://github.com/nats-io/nats-server/issues/7545',
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: { C1: busy(200) },
    faults: [
      change(2, 'add', 'N4'),
      die(2.005, 'leader', 4),
      change(8, 'add', 'N4'),
      change(9, 'add', 'N5'),
      change(14, 'promote', 'N4'),
      die(14.005, 'leader', 7),
      change(20, 'promote', 'N4'),
      change(21, 'promote', 'N5'),
      die(21.005, 'leader', 9),
      change(28, 'promote', 'N5'),
      change(34, 'remove', 'N4'),
      die(34.005, 'leader', 5),
      change(40, 'remove', 'N4'),
      change(44, 'remove', 'N5'),
    ],
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 200 } } }, voters: ['N1', 'N2', 'N3'] },
  },
  {
    id: 'P11',
    title: 'A member that was removed while it was down comes back, and disturbs no other',
    reference: 'pre-vote; a removed member does not know it',
    system: cluster(),
    clients: { C1: holdUntil(60) },
    faults: [down(1, 'follower1', 20), change(5, 'remove', 'follower1')],
    until: 65,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, terms: 1 },
  },
  {
    id: 'P13',
    title: 'A learner that has nothing yet is not promoted',
    reference: 'a voter that lags makes every commit wait',
    system: cluster(),
    clients: { C1: busy(300) },
    faults: [
      change(8, 'add', 'N4'),
      { at: 8, do: 'cut', from: ['N1', 'N2', 'N3'], to: 'N4', for: 13 },
      change(10, 'promote', 'N4'),
      change(30, 'promote', 'N4'),
    ],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      answers: ['add N4: done', 'promote N4: invalid: N4 has not caught up yet', 'promote N4: done'],
      facts: { C1: { loop: { done: 300 } } },
    },
  },
  {
    id: 'P14',
    title: 'Messages of a minute ago arrive, after terms have changed',
    reference: 'old appends and votes are known by their term and index',
    system: cluster(),
    clients: { C1: busy(200), C2: holdUntil(70) },
    faults: [
      { at: 1, do: 'hold', from: 'leader', to: 'follower1', for: 60, count: 10 },
      { at: 1, do: 'hold', from: 'follower1', to: 'leader', for: 60, count: 10 },
      { at: 3, do: 'hold', from: 'leader', to: 'follower2', for: 55, count: 10 },
      down(10, 'leader', 5),
      { at: 20, do: 'hold', from: 'leader', to: 'follower1', for: 45, count: 10 },
      down(30, 'leader', 5),
    ],
    until: 80,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 200 } }, C2: KEPT_HOLD },
      terms: { atLeast: 3 },
      lag: { atMost: 5 },
    },
  },
  {
    id: 'P15',
    title: 'The leader dies in the middle of sending its snapshot',
    reference: 'a snapshot is installed whole or not at all',
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: { C1: busy(400) },
    faults: [down(1, 'follower1', 15), die(16.02, 'leader', 30, 3)],
    until: 50,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 400 } } }, running: 3, lag: { atMost: 5 } },
  },
  {
    id: 'P16',
    title: 'Two snapshots in quick succession',
    reference: `${ETCD}/18055`,
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: { C1: busy(500), C2: busy(500) },
    faults: [down(1, 'follower1', 6), down(8, 'follower1', 4), down(13, 'follower1', 0.5)],
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 500 } }, C2: { loop: { done: 500 } } },
      running: 3,
      lag: { atMost: 5 },
    },
  },
  {
    id: 'P17',
    title: 'A follower whose disk takes two seconds: commits do not wait for it',
    reference: 'a commit needs a majority, not all members',
    system: cluster(),
    clients: { C1: busy(100, 2) },
    faults: [{ at: 1, do: 'system', action: 'disk', trouble: 'slow', ms: 2000, who: 'follower1', for: 60 }],
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 100, at: { atMost: 12 } } } }, terms: 1 },
  },
  {
    id: 'P18',
    title: 'A leader whose disk takes two seconds: no hold is lost',
    reference: 'latency, or another leader; never a lost renewal',
    system: cluster(),
    clients: { C1: holdUntil(50), C2: busy(5, 2) },
    faults: [{ at: 1, do: 'system', action: 'disk', trouble: 'slow', ms: 2000, who: 'leader', for: 40 }],
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD, C2: { loop: { done: 5 } } }, events: { sessionEnded: 0 } },
  },
  {
    id: 'P20',
    title: 'Everybody has the same state after the same entries, on different clocks and after restarts',
    reference: 'apply uses no clock, no random number, no order of a map',
    system: cluster({
      settings: { snapshotBytes: 4096, compareEvery: 8 },
      drift: { N1: 20_000, N2: -20_000, C1: 15_000 },
    }),
    clients: { C1: busy(200), C2: [...busy(200)], C3: acquireFrom(3, { lock: 'busy' }) },
    faults: [down(3, 'follower1', 2), down(7, 'leader', 2), { at: 12, do: 'system', action: 'blackout', for: 1 }],
    until: 60,
    expect: { ...NO_VIOLATIONS, running: 3, failed: 0, lag: { atMost: 5 } },
  },
]

const LOCKS = ['a', 'b', 'c', 'd', 'e', 'f'] as const
const downLate = (who: string) => ({ at: 7, do: 'system', action: 'down', who, for: 15 }) as const

export const LEADER_CASES: readonly Scenario[] = [
  {
    id: 'P22',
    title: 'A member leads once more, and one that had followed it then has not come back yet',
    reference: 'Raft, figure 2: nextIndex and matchIndex are initialized after each election',
    text: 'N1 and N2 are cut off with a tail that no other member has. N1 comes back and leads again, and knows nothing of what N2 has now: what only N1 and N3 have is not committed.',
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
      downLate('N1'),
      downLate('N3'),
    ],
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
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
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 200 } }, C2: { take: { outcome: 'granted', at: { atMost: 31 } } } },
      running: 3,
      lag: { atMost: 5 },
    },
  },
]
