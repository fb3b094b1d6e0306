import type { Scenario } from '../format.js'
import { acquireFrom, cluster, ETCD, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

export const SESSION_CASES: readonly Scenario[] = [
  {
    id: 'S1',
    title: 'A change of the leader keeps the hold',
    reference: `${ETCD}/9395`,
    system: cluster(),
    clients: { C1: holdUntil(15) },
    faults: [{ at: 5, do: 'system', action: 'down', who: 'leader', for: 5 }],
    until: 20,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD },
      order: { L: ['C1'] },
      terms: { atLeast: 2 },
      events: { sessionEnded: 0 },
    },
  },
  {
    id: 'S2',
    title: 'A dead holder, and one election after another: its session ends all the same',
    reference: `${ETCD}/9395`,
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 100 },
      ],
      C2: acquireFrom(1),
    },
    faults: [
      { at: 0.5, do: 'kill', who: 'C1' },
      ...[2, 6, 10, 14, 18].map(
        (at) => ({ at, do: 'system', action: 'down', how: 'kill', who: 'leader', for: 3 }) as const,
      ),
    ],
    until: 60,
    // 1.05 × TTL, and for each of the leader changes until then 1 s, an election and a commit.
    expect: {
      ...NO_VIOLATIONS,
      order: { L: ['C1', 'C2'] },
      grantedAt: { L: [{ atLeast: 0 }, { atLeast: 9.5, atMost: 26 }] },
      terms: { atLeast: 3 },
    },
  },
  {
    id: 'S3',
    title: 'What is left of a lease survives elections, a snapshot and a restart of all members',
    reference: `${ETCD}/17132`,
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: {
      C1: [
        { do: 'client', action: 'take', ttl: '600s', renew: false },
        { do: 'wait', until: 400 },
      ],
      C2: [
        { do: 'wait', until: 290 },
        { do: 'client', action: 'query', name: 'L', as: 'before' },
        { do: 'client', action: 'loop', lock: 'other', count: 200 },
        { do: 'wait', until: 350 },
        { do: 'client', action: 'query', name: 'L', as: 'after' },
      ],
    },
    faults: [
      // No client is left that could renew it.
      { at: 1, do: 'kill', who: 'C1' },
      ...[300, 305, 310, 315, 320].map((at) => ({ at, do: 'system', action: 'down', who: 'leader', for: 2 }) as const),
      { at: 330, do: 'system', action: 'blackout', for: 1 },
    ],
    until: 400,
    expect: {
      ...NO_VIOLATIONS,
      // Time without a leader does not count: some seconds for each change.
      facts: {
        C2: {
          before: { remainingMs: { atLeast: 305_000, atMost: 312_000 } },
          after: { remainingMs: { atLeast: 245_000, atMost: 275_000 } },
        },
      },
      terms: { atLeast: 4 },
    },
  },
  {
    id: 'S4',
    title: 'A leader stuck in its disk is replaced, wakes up with expiries of its own, and revokes nothing',
    reference: `${ETCD}/15247`,
    system: cluster(),
    clients: { C1: holdUntil(30) },
    faults: [
      { at: 1, do: 'system', action: 'disk', trouble: 'stuck', who: 'leader', for: 19 },
      { at: 1, do: 'cut', from: 'leader', to: ['follower1', 'follower2'], for: 19 },
    ],
    until: 35,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, terms: { atLeast: 2 }, events: { sessionEnded: 0 } },
  },
  {
    id: 'S5',
    title: 'A leader without followers answers no renewals; the client connects to another member',
    reference: `${ETCD}/15247`,
    system: cluster({ urls: { C1: ['leader'] } }),
    clients: { C1: holdUntil(30) },
    faults: [{ at: 1, do: 'cut', from: 'leader', to: ['follower1', 'follower2'], for: 19 }],
    until: 35,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, terms: { atLeast: 2 }, events: { sessionEnded: 0 } },
  },
  {
    id: 'S6',
    title: 'Renewals that arrive at the instant of expiry',
    reference: `${ETCD}/20590`,
    text: 'Clients are paused for about a TTL. Each is either renewed and alive, or its session has ended: never both.',
    system: cluster({ ttl: 2, margin: 0.2 }),
    clients: Object.fromEntries(
      Array.from({ length: 9 }, (_, i) => [`C${i + 1}`, holdUntil(6, { lock: `L${i}` }).slice(0, 3)]),
    ),
    faults: Array.from(
      { length: 9 },
      (_, i) => ({ at: 0.7, who: `C${i + 1}`, do: 'pause', for: 1.96 + i * 0.005 }) as const,
    ),
    until: 10,
    expect: { ...NO_VIOLATIONS, facts: { C1: { take: { outcome: 'granted' } }, C9: { state: { state: 'lost' } } } },
  },
  {
    id: 'S8',
    title: "The leader's wall clock jumps by an hour, forth and back",
    reference: `${ETCD}/12291`,
    system: cluster(),
    clients: { C1: holdUntil(25) },
    faults: [
      { at: 2, do: 'stepClock', who: 'leader', clock: 'wall', by: 3600 },
      { at: 6, do: 'stepClock', who: 'leader', clock: 'wall', by: -7200 },
    ],
    until: 30,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, terms: 1, events: { sessionEnded: 0 } },
  },
  ...[200_000, -200_000].map(
    (ppm): Scenario => ({
      id: ppm > 0 ? 'S9' : 'S9s',
      title: `The leader's clock runs 20 % ${ppm > 0 ? 'fast' : 'slow'}: only the guard protects`,
      reference: 'clocks outside the bound that the service promises for (5 %)',
      system: cluster({ clocksOutOfBound: true, ttl: 2, margin: 0.2 }),
      resources: { R: { kind: 'G*' } },
      clients: {
        C1: [{ do: 'acquire' }, { do: 'read' }, { do: 'work', for: 1 }, { do: 'write' }, { do: 'release' }],
        C2: [
          { do: 'wait', until: 0.2 },
          { do: 'acquire', wait: '1m' },
          { do: 'read' },
          { do: 'write' },
          { do: 'release' },
        ],
        // Its renewals are the entries by which clocks are compared.
        C3: holdUntil(45, { lock: 'other' }),
      },
      faults: [
        { at: 0, do: 'drift', who: 'leader', ppm },
        { at: 'C1 in write', do: 'pause', for: 5 },
      ],
      until: 50,
      expect: {
        ...NO_VIOLATIONS,
        units: { C1: 'refused', C2: 'done' },
        values: { R: 1 },
        // Both others see a fast one. A slow one ends sessions late, which is safe, and looks like one that was paused.
        clockAlarms: ppm > 0 ? 2 : 0,
      },
    }),
  ),
]

/** Ends of sessions, expiries and lock delays. */
export const SESSION_END_CASES: readonly Scenario[] = [
  {
    id: 'S19',
    title: 'A thousand sessions end within a second',
    reference: 'expiry storm after an outage of clients',
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'many', count: 1000 }],
      C2: holdUntil(30),
      C3: [
        { do: 'wait', until: 12 },
        { do: 'client', action: 'loop', lock: 'x', count: 100, hold: 0.01 },
      ],
    },
    faults: [{ at: 3, do: 'isolate', who: 'C1', for: 60 }],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { many: { granted: 1000 } }, C2: KEPT_HOLD, C3: { loop: { done: 100, at: { atMost: 20 } } } },
      terms: 1,
      // Those of C1; C2 and C3 keep theirs.
      events: { sessionEnded: 1000 },
    },
  },
  {
    id: 'S20',
    title: 'A client that comes back after the end of its session gets another one',
    reference: 'https://github.com/ClickHouse/ClickHouse/issues/116690',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 35 },
        { do: 'client', action: 'state' },
        { do: 'client', action: 'take', as: 'again' },
      ],
    },
    faults: [{ at: 1, do: 'isolate', who: 'C1', for: 30 }],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { state: { state: 'lost' }, again: { outcome: 'granted' } } },
      events: { sessionOpened: 2, sessionEnded: 1 },
    },
  },
  {
    id: 'S21',
    title: 'A client that knows followers only: its renewals reach the leader',
    reference: 'https://github.com/ClickHouse/ClickHouse/issues/121361',
    system: cluster({ urls: { C1: ['follower1', 'follower2'] } }),
    clients: { C1: holdUntil(40) },
    until: 45,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, events: { sessionEnded: 0 } },
  },
  {
    id: 'S21p',
    title:
      'A waiter comes back on another connection, while its old one still looks open: it is told of its grant at once',
    reference:
      'a router that has forgotten a connection tells neither side; pushes go where the session was attached last',
    system: cluster({ ttl: 30, margin: 3 }),
    clients: {
      C1: holdUntil(60),
      C2: acquireFrom(1),
    },
    faults: [{ at: 2, do: 'forget', from: 'C2', to: 'leader' }],
    until: 80,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: { take: { outcome: 'granted', at: { atLeast: 60, atMost: 60.1 } } } },
    },
  },
  {
    id: 'S22',
    title: 'The leader dies at the moment of an expiry: its successor ends the session',
    reference: `${ETCD}/10686`,
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 100 },
      ],
      C2: acquireFrom(1),
    },
    faults: [
      { at: 0.5, do: 'kill', who: 'C1' },
      { at: 10.0, do: 'system', action: 'dieAtEffect', who: 'leader', nth: 3, for: 3 },
    ],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      order: { L: ['C1', 'C2'] },
      grantedAt: { L: [{ atLeast: 0 }, { atLeast: 9.5, atMost: 16 }] },
    },
  },
  {
    id: 'S24',
    title: 'A lock delay does not apply to a clean release',
    reference: 'Chubby, OSDI 2006, section 2.4',
    system: cluster(),
    clients: { C1: holdUntil(3, { lockDelay: '30s' }), C2: acquireFrom(1) },
    until: 10,
    expect: { ...NO_VIOLATIONS, grantedAt: { L: [{ atLeast: 0 }, { atLeast: 3, atMost: 3.2 }] } },
  },
  {
    id: 'S24d',
    title: 'A lock delay applies when the holder is gone',
    reference: 'Chubby, OSDI 2006, section 2.4',
    system: cluster(),
    clients: { C1: [{ do: 'client', action: 'take', lockDelay: '20s' }], C2: acquireFrom(1) },
    faults: [{ at: 0.5, do: 'kill', who: 'C1' }],
    until: 45,
    expect: { ...NO_VIOLATIONS, grantedAt: { L: [{ atLeast: 0 }, { atLeast: 29, atMost: 35 }] } },
  },
  {
    id: 'S24p',
    title: 'A lock delay keeps the permit of a holder that is gone',
    reference: 'Chubby, OSDI 2006, section 2.4, for a semaphore',
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'take', permits: 1, lockDelay: '20s' }],
      C2: acquireFrom(1, { permits: 1 }),
    },
    faults: [{ at: 0.5, do: 'kill', who: 'C1' }],
    until: 45,
    expect: { ...NO_VIOLATIONS, grantedAt: { L: [{ atLeast: 0 }, { atLeast: 29, atMost: 35 }] } },
  },
  {
    id: 'S25',
    title: 'The answer to the opening of a session is lost: one session, and its lock is its own',
    reference: 'a repeat with the same nonce returns the same session',
    system: cluster({ drops: { C1: [{ message: 'opened', times: 1, breaks: true }] } }),
    clients: { C1: holdUntil(5) },
    until: 10,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, events: { sessionOpened: 1, held: 1 } },
  },
]
