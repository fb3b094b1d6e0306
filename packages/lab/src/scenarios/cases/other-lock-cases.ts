import type { Scenario, Step } from '../format.js'
import { cluster, NO_VIOLATIONS, REDLOCK, unit } from './parts.js'

const r8: Scenario = {
  id: 'R8',
  title: 'One Redis with a replica: the primary dies before the key is replicated',
  reference: `${REDLOCK} (why failover-based implementations are not enough)`,
  text: 'The trace of the Redis manual: the replica that is made the primary has never heard of the lock.',
  system: { kind: 'redis', replica: true },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 3 }), C2: unit({ from: 1 }) },
  faults: [
    { at: 0, do: 'cut', from: 'P', to: 'Q' },
    { at: 0.1, who: 'P', do: 'powerOff' },
    { at: 0.5, do: 'system', action: 'failover' },
  ],
  until: 40,
  expect: { violations: ['lost-update', 'overlap'], values: { U: 1 } },
}

const slow: readonly Step[] = [{ do: 'acquire' }, { do: 'work', for: 11 }, { do: 'release' }]

const r9: Scenario = {
  id: 'R9',
  title: 'One Redis: the lock is released by plain DEL',
  reference: `${REDLOCK} (correct implementation with a single instance: why DEL is not enough)`,
  text: 'C1 works longer than its lease. Its DEL removes the lock of C2, and C3 gets it as well.',
  system: { kind: 'redis', release: 'del' },
  resources: { U: { kind: 'U' } },
  clients: { C1: slow, C2: unit({ from: 10.5, work: 4 }), C3: unit({ from: 12 }) },
  until: 20,
  expect: { violations: ['lost-update', 'overlap'], units: { C2: 'done', C3: 'done' }, values: { U: 1 } },
}

const r9c: Scenario = {
  ...r9,
  id: 'R9c',
  title: 'One Redis, control: the lock is released by compare-and-delete',
  text: 'The same as R9 with the published script: C1 deletes nothing, and C3 does not get the lock.',
  system: { kind: 'redis', release: 'compare-and-delete' },
  expect: { violations: [], units: { C2: 'done', C3: 'not-acquired' }, values: { U: 1 } },
}

/** Holds the lock for a moment. */
const touch: readonly Step[] = [{ do: 'acquire' }, { do: 'release' }]

const r11: Scenario = {
  id: 'R11',
  title: 'A token from INCR on an asynchronously replicated Redis',
  reference: 'Fencing tokens by a counter in the script that sets the lock, as in Redisson',
  text: 'The new primary has not heard of the last increments: it gives the same token again.',
  system: { kind: 'redis', replica: true, counter: 6 },
  clients: { C1: touch, C2: [{ do: 'wait', until: 2 }, ...touch] },
  faults: [
    { at: 0, do: 'cut', from: 'P', to: 'Q' },
    { at: 0.5, who: 'P', do: 'powerOff' },
    { at: 1, do: 'system', action: 'failover' },
  ],
  until: 5,
  expect: { violations: ['token-order'] },
}

const r12: Scenario = {
  id: 'R12',
  title: 'A token from INCR on a Redis that evicts keys',
  reference: 'Fencing tokens by a counter, on an instance with maxmemory and an allkeys policy',
  text: 'The counter is evicted between two grants and begins again at 1. A guard that has seen 7 refuses the rightful holder from then on.',
  system: { kind: 'redis', counter: 6 },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit(), C2: unit({ from: 2 }) },
  faults: [{ at: 1, do: 'system', action: 'evict', key: 'L:token' }],
  until: 5,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused' }, values: { R: 1 } },
}

const r13: Scenario = {
  id: 'R13',
  title: 'The number in the name of a ZooKeeper node as token',
  reference: 'Sequential nodes in a container node that is removed when it is empty',
  text: 'The number counts the children of one parent. The parent is removed when no client waits, and the next one counts from 0.',
  system: { kind: 'zookeeper', token: 'sequence', sequence: 33 },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit(), C2: unit({ from: 65 }) },
  until: 70,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused' }, values: { R: 1 } },
}

const r13c: Scenario = {
  ...r13,
  id: 'R13c',
  title: 'The transaction number (czxid) of a ZooKeeper node as token, control',
  text: 'The transaction number is of the whole ensemble and only grows.',
  system: { kind: 'zookeeper', token: 'czxid', sequence: 33 },
  expect: { violations: [], units: { C1: 'done', C2: 'done' }, values: { R: 2 } },
}

/** Ten grants, then a unit that is stopped in front of its write. */
const busy = [
  ...Array.from({ length: 10 }, () => [{ do: 'acquire' as const }, { do: 'release' as const }]).flat(),
  ...unit({ work: 1 }),
]

const r14: Scenario = {
  id: 'R14',
  title: 'A store whose tokens are revisions is restored from a plain backup',
  reference: 'Revisions after a snapshot restore go back, for example in etcd',
  text: 'The revisions after the backup are given a second time: C2 gets a lower token than C1 has had, is refused, and the stopped write of C1 is taken.',
  system: { kind: 'revision', restore: 'plain' },
  resources: { R: { kind: 'G*' } },
  clients: { C1: busy, C2: unit({ from: 4 }) },
  faults: [
    // Between two grants: there is no hold in the backup.
    { at: 0.057, do: 'system', action: 'backup' },
    { at: 'C1 in write', do: 'pause', for: 8 },
    { at: 3, do: 'system', action: 'restore' },
  ],
  until: 12,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused' }, values: { R: 1 } },
}

const r14c: Scenario = {
  ...r14,
  id: 'R14c',
  title: 'The same restore with a raised epoch, control',
  text: 'Every token of the new epoch is above every token of the old one: C2 continues at once, and C1 is refused.',
  system: { kind: 'revision', restore: 'epoch' },
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { R: 1 } },
}

const r15: Scenario = {
  id: 'R15',
  title: 'A row lock whose expiry the caller computes',
  reference: 'https://github.com/lukas-krecan/ShedLock/issues/132',
  text: 'C1 computes now and expiry, and is paused before its statement leaves. The row that it then writes has expired already, so that C2 gets the lock as well.',
  system: { kind: 'shedlock', atMost: 5, time: 'caller' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 2 }), C2: unit({ from: 6.5 }) },
  faults: [{ at: 'C1 in acquire', do: 'pause', for: 6 }],
  until: 12,
  expect: { violations: ['lost-update', 'overlap'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const r15c: Scenario = {
  ...r15,
  id: 'R15c',
  title: 'A row lock whose expiry the database computes, control',
  text: 'With the time of the database in the statement, this trace does no harm.',
  system: { kind: 'shedlock', atMost: 5, time: 'database' },
  expect: { violations: [], units: { C1: 'done', C2: 'not-acquired' }, values: { U: 1 } },
}

const r16: Scenario = {
  id: 'R16',
  title: 'A lease that is counted from the arrival of the answer',
  reference: 'A common mistake in clients of leases',
  text: 'The answer takes 8 s. A client that counts from its arrival believes in its lease for 8 s longer than the service does.',
  system: { kind: 'redis', deadline: 'receipt' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 4 }), C2: unit({ from: 10.5 }) },
  faults: [{ at: 0, do: 'hold', from: 'P', to: 'C1', for: 8 }],
  until: 20,
  expect: { violations: ['lost-update', 'overlap'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const r16c: Scenario = {
  ...r16,
  id: 'R16c',
  title: 'A lease that is counted from the sending of the question, control',
  text: 'The same answer, counted from when it was asked for: C1 knows in time that its lease has expired.',
  system: { kind: 'redis', deadline: 'send' },
  expect: { violations: [], units: { C1: 'lost', C2: 'done' }, values: { U: 1 } },
}

const queueing = {
  C1: unit({ work: 3 }),
  // In the queue at the same time.
  C2: unit({ from: 1, acquire: { wait: '1m' } }),
  C3: unit({ from: 2, acquire: { wait: '1m' } }),
} as const
const DONE = { units: { C1: 'done', C2: 'done', C3: 'done' }, values: { R: 3 } } as const

/** The number of the request, where waiters are not served in their order. */
const q10r: Scenario = {
  id: 'Q10r',
  title: 'The token is the number of the request, and the last waiter is served first',
  reference:
    'a token that is the number of the request goes back when the queue is not strictly first come, first served',
  text: 'C3 has come last, is served first and writes with token 3. Then C2 has the lock, rightly, with token 2: the guard must refuse it.',
  system: { kind: 'queue', token: 'request', order: 'newest' },
  resources: { R: { kind: 'G*' } },
  clients: queueing,
  until: 10,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused', C3: 'done' }, values: { R: 2 } },
}

export const TICKET_CASES: readonly Scenario[] = [
  q10r,
  {
    ...q10r,
    id: 'Q10g',
    title: 'The same queue with the number of the grant as token, control',
    text: 'Each grant gets the next token.',
    system: { kind: 'queue', token: 'grant', order: 'newest' },
    expect: { ...NO_VIOLATIONS, ...DONE },
  },
  {
    ...q10r,
    id: 'Q10f',
    title: 'The number of the request as token, in a strict queue, control',
    text: 'Served in the order of their requests, their numbers grow as well.',
    system: { kind: 'queue', token: 'request', order: 'fifo' },
    expect: { ...NO_VIOLATIONS, ...DONE },
  },
  {
    ...q10r,
    id: 'Q10p',
    title: 'The same clients at the production service, control',
    text: 'The token is drawn from a counter when the lock is granted.',
    system: cluster(),
    expect: { ...NO_VIOLATIONS, ...DONE, order: { L: ['C1', 'C2', 'C3'] } },
  },
]

/** Locks on one Redis, ZooKeeper, revisions and database rows, and where their tokens come from. */
export const OTHER_LOCK_CASES: readonly Scenario[] = [r8, r9, r9c, r11, r12, r13, r13c, r14, r14c, r15, r15c, r16, r16c]
