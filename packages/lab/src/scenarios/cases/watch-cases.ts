import type { Scenario } from '../format.js'
import { acquireFrom, busy, cluster, ETCD, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

/** Its connections are reset: a client that only watches would notice a machine without power after 10 s at the earliest. */
const killed = (at: number, who: string, forSeconds: number) =>
  ({ at, do: 'system', action: 'down', how: 'kill', who, for: forSeconds }) as const

export const WATCH_CASES: readonly Scenario[] = [
  {
    id: 'W1',
    title: 'Everything is in the snapshot: an empty member becomes the leader',
    reference: 'holders, queue, sessions with what is left of them, delays, answers, epoch',
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: {
      C1: holdUntil(40),
      C2: acquireFrom(1, { wait: '90s' }),
      C3: [{ do: 'client', action: 'take', lock: 'delayed', lockDelay: '60s' }],
      C4: [
        { do: 'wait', until: 20 },
        { do: 'client', action: 'take', lock: 'delayed', wait: '2m' },
      ],
      C5: busy(200),
    },
    faults: [
      { at: 2, do: 'kill', who: 'C3' },
      { at: 14, do: 'system', action: 'replaceDisk', who: 'N3' },
      { at: 16, do: 'system', action: 'remove', who: 'N3' },
      { at: 17, do: 'system', action: 'add', who: 'N3' },
      { at: 24, do: 'system', action: 'promote', who: 'N3' },
      { at: 26, do: 'system', action: 'transfer', to: 'N3' },
    ],
    until: 90,
    expect: {
      ...NO_VIOLATIONS,
      leader: 'N3',
      facts: {
        C1: KEPT_HOLD,
        C2: { take: { outcome: 'granted', at: { atLeast: 40, atMost: 41 } } },
        C4: { take: { at: { atLeast: 68, atMost: 80 } } },
      },
      order: { L: ['C1', 'C2'], delayed: ['C3', 'C4'] },
      lag: { atMost: 5 },
    },
  },
  {
    id: 'W2',
    title: 'A backup is restored under a higher epoch: no token of before comes back',
    reference: 'tokens to 50, backup at 40',
    system: cluster({ ttl: 5, margin: 0.5 }),
    resources: { R: { kind: 'G*' } },
    clients: {
      C1: holdUntil(30, { lock: 'held' }),
      // Of before the backup, and of after it.
      C2: [{ do: 'acquire' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
      C3: [...busy(50, 6), { do: 'acquire' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
      // Its write is on the way while the service is replaced.
      C4: [{ do: 'wait', until: 9.5 }, { do: 'acquire' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
      C5: [
        { do: 'wait', until: 25 },
        { do: 'acquire', wait: '1m' },
        { do: 'read' },
        { do: 'write' },
        { do: 'release' },
      ],
      C6: busy(50, 25),
    },
    faults: [
      { at: 5, do: 'system', action: 'backup' },
      { at: 'C4 in write', do: 'pause', for: 30 },
      { at: 10, do: 'system', action: 'restore', who: 'N1', epoch: 7 },
      { at: 14, do: 'system', action: 'add', who: 'N2' },
      { at: 15, do: 'system', action: 'add', who: 'N3' },
      { at: 20, do: 'system', action: 'promote', who: 'N2' },
      { at: 21, do: 'system', action: 'promote', who: 'N3' },
    ],
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      epoch: 7,
      facts: { C1: { state: { state: 'lost' } }, C6: { loop: { done: 50 } } },
      units: { C2: 'done', C3: 'done', C4: 'refused', C5: 'done' },
      values: { R: 3 },
      voters: ['N1', 'N2', 'N3'],
      running: 3,
      lag: { atMost: 5 },
    },
  },
  {
    id: 'W2e',
    title: 'A holder learns of the new epoch when a backup is restored, also with a persistent hold',
    text: 'A persistent hold is still there after the restore, under another id and with a greater token: the old one is no longer valid.',
    reference: 'a raised epoch ends every session and hold',
    system: cluster({ ttl: 20, margin: 2 }),
    clients: {
      C1: holdUntil(20),
      C2: holdUntil(20, { lock: 'kept', persistent: true }),
      C3: [
        { do: 'wait', until: 22 },
        { do: 'client', action: 'take', wait: 0 },
        { do: 'client', action: 'take', lock: 'kept', wait: 0, as: 'kept' },
      ],
    },
    faults: [
      { at: 3, do: 'system', action: 'backup' },
      { at: 5, do: 'system', action: 'restore', who: 'N1', epoch: 7 },
    ],
    until: 25,
    expect: {
      ...NO_VIOLATIONS,
      epoch: 7,
      facts: {
        C1: { 'take lost': { reason: 'epoch-changed' }, state: { state: 'lost' }, give: { released: false } },
        C2: { 'take lost': { reason: 'epoch-changed' }, state: { state: 'lost' }, give: { released: false } },
        C3: { take: { outcome: 'granted' }, kept: { outcome: 'busy' } },
      },
    },
  },
  {
    id: 'W4',
    title: 'A watch from a place that is no longer known says so',
    reference: `${ETCD}/18089, ${ETCD}/19179`,
    system: cluster({ settings: { historyEvents: 20 } }),
    clients: {
      C1: [
        { do: 'client', action: 'mark' },
        { do: 'wait', until: 10 },
        { do: 'client', action: 'watch', from: 'mark', for: 5 },
      ],
      C2: busy(50),
      C3: [
        { do: 'wait', until: 9 },
        { do: 'client', action: 'mark' },
        { do: 'client', action: 'loop', lock: 'x', count: 3 },
        { do: 'client', action: 'watch', from: 'mark', for: 2 },
      ],
    },
    until: 20,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: { watch: { end: 'gap', count: 0 } },
        C3: { watch: { end: 'aborted', count: { atLeast: 6, atMost: 8 } } },
      },
    },
  },
  {
    id: 'W6',
    title: 'A watch survives changes of the leader, without a gap or a step back',
    reference: `${ETCD}/15271`,
    // No snapshot meanwhile: the history of a member that starts again begins at its newest one.
    system: cluster(),
    clients: { C1: [{ do: 'client', action: 'watch', for: 50 }], C2: busy(200, 0.5) },
    faults: [
      killed(3, 'leader', 4),
      killed(9, 'leader', 4),
      { at: 15, do: 'system', action: 'transfer', to: 'follower1' },
    ],
    until: 60,
    // The session of C2, and each hold from its beginning to its end.
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { watch: { end: 'aborted', count: { atLeast: 400 } } }, C2: { loop: { done: 200 } } },
    },
  },
  {
    id: 'W6s',
    title: 'A watch at a member that was cut off, and is given a snapshot: what it left out is told as a gap',
    reference: `${ETCD}/15271; a snapshot has the state, and not the events that led to it`,
    text: 'C1 only watches, and stays with the leader when it is cut off from the others. The log that it lacks is gone.',
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: {
      C1: [{ do: 'client', action: 'watch', for: 40 }],
      C2: [
        { do: 'wait', until: 0.5 },
        { do: 'client', action: 'loop', count: 400, hold: 0.005, data: 4000 },
      ],
    },
    faults: [{ at: 2, do: 'cut', from: 'leader', to: ['follower1', 'follower2'], for: 25 }],
    until: 50,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { watch: { end: 'gap' } }, C2: { loop: { done: 400 } } },
      lag: { atMost: 5 },
    },
  },
  {
    id: 'W7',
    title: 'Who observes an election sees every leader, and that there is none',
    reference: `${ETCD}/18163`,
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'observe', for: 20 }],
      C2: [
        { do: 'wait', until: 2 },
        { do: 'client', action: 'campaign', value: 'one' },
        { do: 'wait', until: 5 },
        { do: 'client', action: 'give', hold: 'campaign' },
      ],
      C3: [
        { do: 'wait', until: 8 },
        { do: 'client', action: 'campaign', value: 'two' },
        { do: 'wait', until: 12 },
        { do: 'client', action: 'give', hold: 'campaign' },
      ],
    },
    until: 25,
    expect: { ...NO_VIOLATIONS, facts: { C1: { observe: { leaders: [null, 'one', null, 'two', null] } } } },
  },
  {
    id: 'W8',
    title: 'A feature level that members do not know is refused by the state itself',
    reference: 'a new command needs all members first',
    system: cluster(),
    clients: { C1: holdUntil(10) },
    faults: [{ at: 2, do: 'system', action: 'configure', level: 99 }],
    until: 15,
    expect: { ...NO_VIOLATIONS, answers: ['configure: invalid'], facts: { C1: KEPT_HOLD }, failed: 0, running: 3 },
  },
  {
    id: 'W10',
    title: 'The service is at its limit: release, renew, steal and expiry still work',
    reference: 'a full store must be able to empty itself',
    system: cluster({ limits: { holds: 3 } }),
    clients: {
      C1: holdUntil(20, { lock: 'a' }),
      C2: [{ do: 'client', action: 'take', lock: 'b' }],
      C3: holdUntil(20, { lock: 'c' }),
      C4: [
        { do: 'wait', until: 2 },
        { do: 'client', action: 'take', lock: 'd', wait: 0, as: 'full' },
        { do: 'wait', until: 16 },
        { do: 'client', action: 'take', lock: 'd', wait: 0, as: 'expired' },
        { do: 'client', action: 'steal', lock: 'd' },
        { do: 'client', action: 'take', lock: 'd', wait: 0, as: 'stolen' },
        { do: 'client', action: 'give', hold: 'stolen' },
      ],
    },
    faults: [{ at: 1, do: 'kill', who: 'C2' }],
    until: 25,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: KEPT_HOLD,
        C3: KEPT_HOLD,
        C4: {
          full: { outcome: 'limit' },
          expired: { outcome: 'granted' },
          stolen: { outcome: 'granted' },
          give: { released: true },
        },
      },
    },
  },
  {
    id: 'W11',
    title: 'A client with as many open requests as it may have keeps what it holds',
    reference: 'renewals have a lane of their own',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'queueUp', count: 800, background: true },
        { do: 'wait', until: 40 },
        { do: 'client', action: 'state' },
      ],
    },
    until: 45,
    expect: { ...NO_VIOLATIONS, facts: { C1: { state: { state: 'held' }, losses: 0 } }, waiting: { atLeast: 500 } },
  },
  {
    id: 'W15',
    title: 'A value is compared and set by a client that was paused meanwhile',
    reference: 'versions grow with every write',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'put', key: 'k', value: 'a', ifVersion: '0', as: 'first' },
        { do: 'client', action: 'get', key: 'k' },
        { do: 'wait', until: 3 },
        { do: 'client', action: 'put', key: 'k', value: 'c', ifVersion: 'seen' },
        { do: 'client', action: 'get', key: 'k', as: 'after' },
      ],
      C2: [
        { do: 'wait', until: 2 },
        { do: 'client', action: 'get', key: 'k' },
        { do: 'client', action: 'put', key: 'k', value: 'b', ifVersion: 'seen' },
      ],
    },
    faults: [{ at: 1, who: 'C1', do: 'pause', for: 20 }],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { put: { outcome: 'version-conflict' }, after: { value: 'b' } }, C2: { put: { done: true } } },
    },
  },
]
