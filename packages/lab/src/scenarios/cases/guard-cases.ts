import type { Scenario, Step } from '../format.js'
import { ARTICLE, unit } from './parts.js'

const a1: Scenario = {
  id: 'A1',
  title: 'A pause after the check, and a resource that checks nothing',
  reference: `${ARTICLE} (protecting a resource with a lock)`,
  text: 'The lock service does everything right: the session of C1 ends, C2 gets a greater token. But the resource does not check tokens, so the late write of C1 overwrites that of C2.',
  system: { kind: 'leasehold' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 1 }), C2: unit({ from: 2 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 15 }],
  until: 20,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const a1g: Scenario = {
  id: 'A1g',
  title: 'A pause after the check, and a guarded resource',
  reference: `${ARTICLE} (making the lock safe with fencing)`,
  text: 'The same pause as in A1. The resource keeps the greatest token that it has seen and refuses the late write.',
  system: { kind: 'leasehold' },
  resources: { G: { kind: 'G' } },
  clients: { C1: unit({ work: 1 }), C2: unit({ from: 2 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 15 }],
  until: 20,
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { G: 1 } },
}

const a2: Scenario = {
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

const a2u: Scenario = {
  ...a2,
  id: 'A2u',
  title: 'A write that the network keeps for 90 seconds, at a resource that checks nothing',
  text: 'The same packet as in A2 overwrites what C2 has written.',
  resources: { U: { kind: 'U' } },
  faults: [
    { at: 0, do: 'hold', from: 'C1', to: 'U', label: 'write', for: 90 },
    { at: 2, who: 'C1', do: 'kill' },
  ],
  expect: { violations: ['lost-update'], units: { C1: 'unfinished', C2: 'done' }, values: { U: 1 } },
}

const a3: Scenario = {
  id: 'A3',
  title: 'A pause between the local check and the send',
  reference: `${ARTICLE} (you cannot fix this by checking the expiry just before the write)`,
  text: 'C1 looks at its lease 10 ms before its local deadline: still good. Then it is paused. A local check is not safety; the guard is.',
  system: { kind: 'leasehold' },
  resources: { G: { kind: 'G' } },
  clients: { C1: unit({ work: 8.95, acquire: { renew: false } }), C2: unit({ from: 2 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 20 }],
  until: 40,
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { G: 1 } },
}

/** C1 reads, and is paused in front of its write; C2 reads while nothing has been written since, and writes later. */
const late: readonly Step[] = unit({ from: 2, work: 8 })

const a4: Scenario = {
  id: 'A4',
  title: 'A stale write before the first write of the next holder: reading does not raise the mark',
  reference: 'Fencing tokens that are compared at writes only',
  text: 'C2 has read, but not yet written, when the write of C1 arrives: its token is the greatest that the resource has seen, so it is accepted and acknowledged. Then C2 writes what it computed from the old value: the update of C1 is lost.',
  system: { kind: 'leasehold' },
  resources: { G: { kind: 'G', initial: 5 } },
  clients: { C1: unit({ work: 1 }), C2: late },
  faults: [{ at: 'C1 in write', do: 'pause', for: 14 }],
  until: 30,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { G: 6 } },
}

const a4g: Scenario = {
  ...a4,
  id: 'A4g',
  title: 'A stale write before the first write of the next holder: opening raises the mark',
  text: 'The same as A4, but a resource is opened with the token before it is read: the mark is up before the write of C1 arrives.',
  resources: { R: { kind: 'G*', initial: 5 } },
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { R: 6 } },
}

const a6: Scenario = {
  id: 'A6',
  title: 'A lease much shorter than the work, and no renewal gets through',
  reference: `${ARTICLE} (the lock has a timeout)`,
  text: 'C1 learns before its lease ends that the hold is lost, and abandons the unit; C2 continues. No update is lost.',
  system: { kind: 'leasehold', ttl: 1, margin: 0.1 },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 0.5 }) },
  faults: [{ at: 0.1, do: 'cut', from: 'C1', to: ['N1', 'N2', 'N3'] }],
  until: 10,
  expect: {
    violations: [],
    units: { C1: 'lost', C2: 'done' },
    values: { R: 1 },
    beliefOverlapMs: 0,
    grants: { C2: [{ atLeast: 1, atMost: 2.5 }] },
  },
}

const a7: Scenario = {
  id: 'A7',
  title: 'A resource that cannot check, and a lock delay that is long enough',
  reference: `${ARTICLE}; lock delays are those of Chubby (Burrows 2006, 2.4)`,
  text: 'C1 crashes with a message on its way. The lock is not granted for 15 s after the end of its session, so the effect comes before C2.',
  system: { kind: 'leasehold' },
  resources: { X: { kind: 'X' } },
  clients: {
    C1: [{ do: 'acquire', lockDelay: 15_000 }, { do: 'work', for: 0.5 }, { do: 'effect' }, { do: 'work', for: 10 }],
    C2: [{ do: 'wait', until: 2 }, { do: 'acquire', wait: 60_000 }, { do: 'effect' }, { do: 'release' }],
  },
  faults: [
    { at: 0, do: 'hold', from: 'C1', to: 'X', label: 'effect', for: 20 },
    { at: 1, who: 'C1', do: 'kill' },
  ],
  until: 45,
  expect: { violations: [], units: { C2: 'done' }, values: { X: 2 }, grants: { C2: [{ atLeast: 25, atMost: 28 }] } },
}

const a7late: Scenario = {
  ...a7,
  id: 'A7late',
  title: 'A resource that cannot check, and a message that is slower than the lock delay',
  text: 'A lock delay makes it rare, not impossible.',
  faults: [
    { at: 0, do: 'hold', from: 'C1', to: 'X', label: 'effect', for: 30 },
    { at: 1, who: 'C1', do: 'kill' },
  ],
  expect: { violations: ['late-effect'], units: { C2: 'done' }, values: { X: 2 } },
}

const a8: Scenario = {
  id: 'A8',
  title: 'A resource that asks the lock service, and then takes its time',
  reference: 'Online verification of tokens instead of a mark',
  text: 'The service says rightly that the token of C1 is the present one. Then the resource stalls for 12 s, C2 comes and writes, and the write of C1 takes effect after it.',
  system: { kind: 'leasehold' },
  resources: { V: { kind: 'V', stall: 12 } },
  clients: { C1: unit({ work: 0.5 }), C2: unit({ from: 1, work: 0 }) },
  faults: [{ at: 1, who: 'C1', do: 'kill' }],
  until: 40,
  expect: { violations: ['lost-update'] },
}

const a8m: Scenario = {
  ...a8,
  id: 'A8m',
  title: 'A resource that asks the lock service, and keeps a mark as well',
  text: 'The mark is compared in the same step as the write: the late write is refused.',
  resources: { V: { kind: 'V', stall: 12, mark: true } },
  expect: { violations: [] },
}

const a9: Scenario = {
  id: 'A9',
  title: 'A lock that only saves work may fail',
  reference: `${ARTICLE} (efficiency or correctness)`,
  text: 'One store without fsync forgets the lock, and the work is done twice. That is allowed: these holds are called approximate and have no token, so they cannot guard anything.',
  system: { kind: 'redis', fsync: 'no', approximate: true },
  clients: {
    C1: [{ do: 'acquire' }, { do: 'work', for: 5 }, { do: 'release' }],
    C2: [{ do: 'wait', until: 3 }, { do: 'acquire' }, { do: 'work', for: 1 }, { do: 'release' }],
  },
  faults: [
    { at: 1, who: 'P', do: 'powerOff' },
    { at: 2, who: 'P', do: 'start' },
  ],
  until: 10,
  expect: { violations: [], approximate: true, beliefOverlapMs: { atLeast: 900 } },
}

const a10: Scenario = {
  id: 'A10',
  title: 'A guard that restarts: its mark is durable with the write',
  reference: 'A mark that lives only in memory',
  text: 'The resource is killed right after it has acknowledged the write of C2. Its mark is still there when it comes back, and C1 is refused.',
  system: { kind: 'leasehold' },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit({ work: 1 }), C2: unit({ from: 2 }) },
  faults: [
    { at: 'C1 in write', do: 'pause', for: 15 },
    { at: 'C2 after write', who: 'R', do: 'powerOff' },
    { at: 14, who: 'R', do: 'start' },
  ],
  until: 30,
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { R: 1 } },
}

const a10bad: Scenario = {
  ...a10,
  id: 'A10bad',
  title: 'A broken guard that restarts: it acknowledges before its mark is durable',
  text: 'The mark is lost with the power; the stale write is accepted.',
  resources: { R: { kind: 'G*', acknowledgesBeforeSync: true } },
  expect: { violations: ['mark-order'], units: { C1: 'done', C2: 'done' } },
}

/** Late writes of a holder that has lost its lock, and resources that let them through or refuse them. */
export const GUARD_CASES: readonly Scenario[] = [
  a1,
  a1g,
  a2,
  a2u,
  a3,
  a4,
  a4g,
  a6,
  a7,
  a7late,
  a8,
  a8m,
  a9,
  a10,
  a10bad,
]
