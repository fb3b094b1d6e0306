import type { Scenario } from '../format.js'
import { acquireFrom, ANY_TIME, cluster, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

/** What a client knows of its lease: local deadlines, clocks, suspends, lost renewals. */
export const DEADLINE_CASES: readonly Scenario[] = [
  {
    id: 'S10',
    title: "The client's machine is suspended for a minute, and its monotonic clock stands still",
    reference: 'Linux: CLOCK_MONOTONIC does not count suspend',
    system: cluster(),
    resources: { R: { kind: 'G*' } },
    clients: {
      C1: [{ do: 'acquire' }, { do: 'read' }, { do: 'wait', until: 5 }, { do: 'write' }, { do: 'release' }],
      C2: [{ do: 'wait', until: 3 }, { do: 'acquire', wait: '2m' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
    },
    faults: [{ at: 2, who: 'C1', do: 'suspend', for: 60 }],
    until: 80,
    expect: { ...NO_VIOLATIONS, units: { C1: 'lost', C2: 'done' }, values: { R: 1 } },
  },
  {
    id: 'S10r',
    title:
      'The answer to a renewal waits in a suspended machine: at its wake it comes too late, and counts for nothing',
    text: 'The answer is read before any timer runs. Its renewal was sent in time, but the deadline that it grants has passed. The machine has lost its network meanwhile, so only the client can know.',
    reference: 'a hold that is lost never becomes held again',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        // A fifth of a second after the wake, by its monotonic clock.
        { do: 'wait', until: 4.7 },
        { do: 'client', action: 'state' },
      ],
      C2: acquireFrom(3),
    },
    faults: [
      { at: 3, do: 'clog', from: 'leader', to: 'C1', for: 3 },
      { at: 4.5, who: 'C1', do: 'suspend', for: 60 },
      { at: 8, who: 'C1', do: 'isolate', for: 65 },
    ],
    until: 80,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { state: { state: 'lost' }, 'take lost': { reason: 'deadline' } } },
      order: { L: ['C1', 'C2'] },
      grantedAt: { L: [ANY_TIME, { atLeast: 13, atMost: 16 }] },
    },
  },
  {
    id: 'S12',
    title: 'No quorum for six seconds: a warning, and nothing is lost',
    reference: 'a short outage of the network between members',
    system: cluster(),
    clients: { C1: holdUntil(25) },
    // Right after a renewal: with one every third of the TTL, nine seconds are left.
    faults: [{ at: 3.6, do: 'cut', from: ['N1', 'N2', 'N3'], to: ['N1', 'N2', 'N3'], for: 6 }],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { ...KEPT_HOLD, warnings: { atLeast: 1 } } },
      events: { sessionEnded: 0 },
    },
  },
  {
    id: 'S13',
    title: 'The holder is cut off: it knows before anybody else gets the lock',
    reference: 'local deadline: send time of the last acknowledged renewal + TTL − margin',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'lost' },
      ],
      C2: acquireFrom(4),
    },
    faults: [{ at: 3, do: 'isolate', who: 'C1', for: 60 }],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { lost: { reason: 'deadline', at: { atLeast: 8.5, atMost: 12.1 } } } },
      order: { L: ['C1', 'C2'] },
      grantedAt: { L: [{ atLeast: 0 }, { atLeast: 9.5, atMost: 15 }] },
    },
  },
  {
    id: 'S13r',
    title: 'The answer to a renewal comes late, and then the holder is cut off: the lease began when it asked',
    reference: 'the send time counts, not the arrival of the answer',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'lost' },
      ],
      C2: acquireFrom(1),
    },
    faults: [
      { at: 3, do: 'clog', from: 'leader', to: 'C1', for: 1.9 },
      { at: 4.95, do: 'isolate', who: 'C1', for: 60 },
    ],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { lost: { reason: 'deadline', at: { atLeast: 8 } } } },
      order: { L: ['C1', 'C2'] },
    },
  },
  {
    id: 'S13d',
    title: 'A slow clock at the holder and fast ones at the members, within the bound: the margin is enough',
    reference: 'clocks of two machines differ by at most 5 %',
    system: cluster({ drift: { C1: -24_000, N1: 24_000, N2: 24_000, N3: 24_000 } }),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'lost' },
      ],
      C2: acquireFrom(1),
    },
    faults: [{ at: 3.6, do: 'isolate', who: 'C1', for: 60 }],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { lost: { reason: 'deadline', at: { atLeast: 8 } } } },
      order: { L: ['C1', 'C2'] },
    },
  },
  {
    id: 'S13w',
    title: 'The wall clock of a holder that is cut off is set back by an hour: its monotonic clock counts',
    reference: 'the larger of both clocks counts',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'lost' },
      ],
      C2: acquireFrom(1),
    },
    faults: [
      { at: 3, do: 'isolate', who: 'C1', for: 60 },
      { at: 4, do: 'stepClock', who: 'C1', clock: 'wall', by: -3600 },
    ],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { lost: { reason: 'deadline', at: { atLeast: 8 } } } },
      order: { L: ['C1', 'C2'] },
    },
  },
  {
    id: 'S14',
    title: 'Renewals vanish without a word: the hold ends here, without any I/O',
    reference: 'https://github.com/hashicorp/consul/issues/18271',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'lost' },
      ],
    },
    faults: [{ at: 1, do: 'cut', from: 'C1', to: ['N1', 'N2', 'N3'], oneWay: true, for: 100 }],
    until: 20,
    expect: { ...NO_VIOLATIONS, facts: { C1: { lost: { reason: 'deadline', at: { atLeast: 8.5, atMost: 9.1 } } } } },
  },
  {
    id: 'S15',
    title: 'Two of three renewals fail, for ten minutes',
    reference: 'one transient error must not drop a hold',
    system: cluster({ drops: { C1: [{ message: 'renew', pattern: '110' }] } }),
    clients: { C1: holdUntil(600) },
    until: 610,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, order: { L: ['C1'] } },
  },
  {
    id: 'S16',
    title: 'The work is stuck and renewals continue: maxHold ends the hold',
    reference: 'heartbeats prove that a process lives, not that it works',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take', maxHold: '5s' },
        { do: 'client', action: 'lost' },
      ],
      C2: acquireFrom(1),
    },
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: { lost: { reason: 'deadline', at: { atLeast: 4.9, atMost: 5.1 } } },
        C2: { take: { outcome: 'granted' } },
      },
      grantedAt: { L: [{ atLeast: 0 }, { atLeast: 5, atMost: 16 }] },
    },
  },
  {
    id: 'S18',
    title: 'Times longer than a timer can wait do not end at once',
    reference: 'Node: a timer beyond 2^31 − 1 ms fires after 1 ms',
    system: cluster(),
    clients: {
      C1: holdUntil(60, { ttl: '24h', maxHold: '60d' }),
      C2: [{ do: 'client', action: 'take', wait: '40d', as: 'take' }],
    },
    until: 70,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD, C2: { take: { outcome: 'granted', at: { atLeast: 59 } } } } },
  },
]
