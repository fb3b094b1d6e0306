import type { Scenario } from '../format.js'
import { acquireFrom, ANY_TIME, cluster, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

const FIRST_COME = 'waiters are served strictly first come, first served'

export const GRANT_CASES: readonly Scenario[] = [
  {
    id: 'Q1',
    title: 'A waiter whose session ends leaves the queue, and is never granted in its old place',
    reference: FIRST_COME,
    system: cluster(),
    clients: {
      C1: holdUntil(20),
      C2: acquireFrom(0.5, { wait: '8s' }),
      C3: holdUntil(25, { wait: '1m' }).toSpliced(0, 0, { do: 'wait', until: 1 }),
    },
    faults: [{ at: 2, do: 'isolate', who: 'C2', for: 15 }],
    until: 30,
    expect: {
      ...NO_VIOLATIONS,
      order: { L: ['C1', 'C3'] },
      facts: { C2: { take: { outcome: 'timeout' } } },
      waiting: 0,
    },
  },
  {
    id: 'Q4',
    title: 'The answer to an acquire is lost, and its leader dies: the repeat gets the same grant',
    reference: 'a repeat with the same request number returns the first answer',
    system: cluster({ drops: { C1: [{ message: 'granted', times: 1, breaks: true }] } }),
    clients: { C1: holdUntil(10) },
    faults: [{ at: 0.095, do: 'system', action: 'down', who: 'leader', for: 3 }],
    until: 15,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, order: { L: ['C1'] }, events: { held: 1, queued: 0 } },
  },
  {
    id: 'Q6',
    title: 'The answer to a release is lost: the repeat succeeds once, and frees no other hold',
    reference: 'a release names its hold',
    system: cluster({ drops: { C1: [{ message: 'released', times: 1, breaks: true }] } }),
    clients: { C1: holdUntil(3), C2: holdUntil(10, { wait: '1m' }).toSpliced(0, 0, { do: 'wait', until: 1 }) },
    until: 15,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: KEPT_HOLD },
      order: { L: ['C1', 'C2'] },
      events: { freed: 2 },
    },
  },
  {
    id: 'Q6u',
    title: 'A release that cannot be sent for longer than its caller waits is sent when there is a way again',
    reference: 'found by exploring: the hold lived on in a session that went on renewing',
    system: cluster({ ttl: 20, margin: 2 }),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 1.5 },
        { do: 'client', action: 'give' },
        { do: 'wait', until: 12 },
        { do: 'client', action: 'take', lock: 'other', as: 'again' },
      ],
      C2: acquireFrom(1),
    },
    faults: [
      // The connection is reset, and there is no other for a while.
      { at: 0.98, do: 'system', action: 'down', how: 'kill', who: 'leader', for: 2 },
      { at: 1, do: 'isolate', who: 'C1', for: 8 },
    ],
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { give: { outcome: 'unreachable' }, again: { outcome: 'granted' } } },
      order: { L: ['C1', 'C2'] },
      grantedAt: { L: [ANY_TIME, { atLeast: 9, atMost: 13 }] },
      events: { sessionEnded: 0 },
    },
  },
  {
    id: 'Q7',
    title: 'A release that arrives after the lock has passed on has no effect',
    text: 'C1 gives up waiting for the answer and repeats the release on another connection; the first one arrives much later.',
    reference: 'a release names its hold',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 1 },
        { do: 'client', action: 'give' },
      ],
      C2: holdUntil(35, { wait: '1m' }).toSpliced(0, 0, { do: 'wait', until: 0.5 }),
    },
    faults: [{ at: 0.9, do: 'hold', from: 'C1', to: 'leader', label: 'release', for: 20 }],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C2: KEPT_HOLD },
      order: { L: ['C1', 'C2'] },
      grantedAt: { L: [ANY_TIME, { atLeast: 1 }] },
    },
  },
  {
    id: 'Q6p',
    title: 'The answer to a write is lost, and another request of the session ends before the repeat: one write',
    reference: 'an answer is kept until its client has acknowledged it, whatever else the session does',
    // Both the write and its answer are a put: the first answer is lost, and with it the connection.
    system: cluster({ drops: { C1: [{ message: 'put', pattern: '0100', breaks: true }] } }),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 1 },
        { do: 'client', action: 'take', lock: 'M', wait: '1s', as: 'waiting', background: true },
        { do: 'wait', until: 1.5 },
        { do: 'client', action: 'put', key: 'k', value: 'new' },
        { do: 'client', action: 'give' },
      ],
      C2: [{ do: 'client', action: 'take', lock: 'M' }],
    },
    faults: [
      // The write arrives, and its answer only after the wait for M has ended.
      { at: 1.5, do: 'cut', from: ['N1', 'N2', 'N3'], to: 'C1', oneWay: true, for: 1.2 },
    ],
    until: 12,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: {
          put: { done: true },
          waiting: { outcome: 'timeout' },
          give: { released: true },
        },
      },
      events: { put: 1 },
    },
  },
  {
    id: 'Q7c',
    title: 'An acquire that was given up arrives after its cancel: it has no effect',
    text: 'The connection to N1 stands still, and N2 leads for a while: C1 gives up, and says so there. Then N1 leads again, and has the acquire before C1 is back.',
    reference: 'a cancel of a request that never came stands in for it',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take', lock: 'other' },
        { do: 'wait', until: 4 },
        { do: 'client', action: 'take', as: 'late', background: true },
        { do: 'wait', until: 5 },
        { do: 'client', action: 'abort', hold: 'late' },
        { do: 'wait', until: 20 },
        { do: 'client', action: 'state' },
      ],
      C2: acquireFrom(12),
    },
    faults: [
      { at: 0.5, do: 'system', action: 'transfer', to: 'N1' },
      { at: 3.9, do: 'hold', from: 'C1', to: 'N1', label: 'acquire', for: 5.5 },
      { at: 4.5, do: 'system', action: 'transfer', to: 'N2' },
      { at: 9, do: 'system', action: 'transfer', to: 'N1' },
    ],
    until: 25,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { late: { outcome: 'aborted' }, state: { state: 'held' } } },
      order: { L: ['C2'] },
      grantedAt: { L: [{ atLeast: 12, atMost: 12.2 }] },
      commands: { cancel: { atLeast: 1 }, acquire: 3 },
    },
  },
  {
    id: 'Q8',
    title: 'A hundred waiters, and a new leader every other second: the order stays',
    reference: FIRST_COME,
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: { C1: [{ do: 'client', action: 'queueUp', count: 100, hold: 0.1 }] },
    faults: [2, 4, 6, 8, 10, 12].map(
      (at, i) => ({ at, do: 'system', action: 'transfer', to: `follower${(i % 2) + 1}` }) as const,
    ),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { queueUp: { granted: 100, inOrder: true } } }, terms: { atLeast: 4 } },
  },
  {
    id: 'Q9',
    title: 'Five hundred waiters: each release wakes one',
    reference: 'no herd: one release wakes the waiters that it grants',
    system: cluster(),
    clients: { C1: [{ do: 'client', action: 'queueUp', count: 500, hold: 0.001 }] },
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { queueUp: { granted: 500, inOrder: true } } },
      pushes: { atLeast: 499, atMost: 505 },
    },
  },
  {
    id: 'Q10',
    title: 'Waiters that give up in the middle of the queue: tokens are of grants, not of requests',
    reference: 'a token that is the number of the request would go back',
    system: cluster(),
    clients: {
      C1: holdUntil(5),
      C2: [
        { do: 'wait', until: 1 },
        { do: 'client', action: 'take', wait: '1m', background: true },
        { do: 'wait', until: 4 },
        { do: 'client', action: 'abort' },
      ],
      C3: holdUntil(8, { wait: '1m' }).toSpliced(0, 0, { do: 'wait', until: 2 }),
    },
    until: 15,
    expect: {
      ...NO_VIOLATIONS,
      order: { L: ['C1', 'C3'] },
      facts: { C2: { take: { outcome: 'aborted' } }, C3: KEPT_HOLD },
      waiting: 0,
    },
  },
  {
    id: 'Q11',
    title: 'Readers without an end: a writer waits for one generation of them',
    reference: FIRST_COME,
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'loop', mode: 'shared', count: 40, hold: 0.5 }],
      C2: [
        { do: 'wait', until: 0.25 },
        { do: 'client', action: 'loop', mode: 'shared', count: 40, hold: 0.5 },
      ],
      C3: [
        { do: 'wait', until: 5 },
        { do: 'client', action: 'take', as: 'take' },
        { do: 'client', action: 'give' },
      ],
    },
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C3: { take: { outcome: 'granted', at: { atMost: 5.7 } } }, C1: { loop: { done: 40 } } },
    },
  },
  {
    id: 'Q11w',
    title: 'A writer that gives up while readers are there lets the readers behind it in',
    reference: 'a waiter that leaves the queue lets the next one proceed',
    system: cluster(),
    clients: {
      C1: holdUntil(20, { mode: 'shared' }),
      C2: acquireFrom(1, { wait: '4s' }),
      C3: holdUntil(10, { mode: 'shared', wait: '1m' }).toSpliced(0, 0, { do: 'wait', until: 2 }),
      // The same with several locks: a waiter for both keeps its place at the free one.
      C4: holdUntil(20, { lock: 'a' }),
      C5: acquireFrom(1, { locks: ['a', 'b'], wait: '4s' }),
      C6: holdUntil(10, { lock: 'b', wait: '1m' }).toSpliced(0, 0, { do: 'wait', until: 2 }),
    },
    until: 25,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: KEPT_HOLD,
        C2: { take: { outcome: 'timeout' } },
        C3: { ...KEPT_HOLD, take: { outcome: 'granted', at: { atLeast: 5, atMost: 5.2 } } },
        C5: { take: { outcome: 'timeout' } },
        C6: { ...KEPT_HOLD, take: { outcome: 'granted', at: { atLeast: 5, atMost: 5.2 } } },
      },
    },
  },
  {
    id: 'Q12',
    title: 'Readers share a token, the writer has a greater one, and a reader may never write',
    reference: 'shared holds that overlap are one generation',
    system: cluster(),
    resources: { R: { kind: 'G*' } },
    clients: {
      C1: holdUntil(5, { mode: 'shared' }),
      C2: holdUntil(4, { mode: 'shared' }),
      C3: [{ do: 'wait', until: 1 }, { do: 'acquire', wait: '1m' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
      C4: [
        { do: 'wait', until: 8 },
        { do: 'acquire', mode: 'shared' },
        { do: 'write', check: false },
      ],
    },
    until: 12,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: KEPT_HOLD },
      // Two readers, the writer, a reader.
      generations: { L: 3 },
      units: { C3: 'done', C4: 'lost' },
      values: { R: 1 },
    },
  },
  {
    id: 'Q14',
    title: 'The holder of a permit dies: the permit comes back with the end of its session',
    reference: 'permits that leak make a semaphore smaller for ever',
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'take', permits: 2 }],
      C2: holdUntil(30, { permits: 2 }),
      C3: [
        { do: 'wait', until: 1 },
        { do: 'client', action: 'take', permits: 2, wait: '1m' },
      ],
    },
    faults: [{ at: 0.5, do: 'kill', who: 'C1' }],
    until: 35,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C3: { take: { outcome: 'granted', at: { atLeast: 9.5, atMost: 15 } } }, C2: KEPT_HOLD },
    },
  },
  {
    id: 'Q16',
    title: 'Two locks, taken in both orders: no deadlock, all or nothing',
    reference: 'one command names all locks',
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'loop', locks: ['a', 'b'], count: 100, hold: 0.02 }],
      C2: [{ do: 'client', action: 'loop', locks: ['b', 'a'], count: 100, hold: 0.02 }],
      C3: [{ do: 'client', action: 'loop', locks: ['b', 'c', 'a'], count: 100, hold: 0.02 }],
    },
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 100 } }, C2: { loop: { done: 100 } }, C3: { loop: { done: 100 } } },
      waiting: 0,
    },
  },
]
