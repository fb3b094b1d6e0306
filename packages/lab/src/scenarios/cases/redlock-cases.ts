import type { Scenario } from '../format.js'
import { ANSWER, ARTICLE, REDLOCK, unit } from './parts.js'

const r1: Scenario = {
  id: 'R1',
  title: 'Redlock: the clock of one node jumps forward',
  reference: `${ARTICLE} (breaking Redlock with bad timings); ${REDLOCK}`,
  text: 'C1 has A, B and C. The wall clock of C jumps by 15 s, so C lets the key expire. C2 gets C, D and E: two majorities, two valid holds.',
  system: { kind: 'redlock' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 2 }) },
  faults: [
    { at: 0, do: 'cut', from: 'C1', to: ['D', 'E'] },
    { at: 0, do: 'cut', from: 'C2', to: ['A', 'B'] },
    { at: 1, who: 'C', do: 'stepClock', clock: 'wall', by: 15 },
  ],
  until: 12,
  expect: { violations: ['lost-update', 'overlap'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const r2: Scenario = {
  id: 'R2',
  title: 'Redlock: a node loses power before its key is on disk (fsync every second)',
  reference: `${ARTICLE} (a node crashes and its key is lost); ${REDLOCK} (performance, crash recovery and fsync)`,
  text: 'C1 has A, B and C. C loses power before its next fsync and comes back without the key. C2 gets C, D and E.',
  system: { kind: 'redlock', fsync: 'everysec' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 1 }) },
  faults: [
    { at: 0, do: 'cut', from: 'C1', to: ['D', 'E'] },
    { at: 0, do: 'cut', from: 'C2', to: ['A', 'B'] },
    { at: 0.2, who: 'C', do: 'powerOff' },
    { at: 0.4, who: 'C', do: 'start' },
  ],
  until: 12,
  expect: { violations: ['lost-update', 'overlap'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const r2c: Scenario = {
  ...r2,
  id: 'R2c',
  title: 'Redlock, control: a node loses power, fsync always',
  text: 'The same as R2 with every write on disk before its answer: C comes back with the key, and C2 does not get a majority.',
  system: { kind: 'redlock', fsync: 'always' },
  expect: { violations: [], units: { C1: 'done', C2: 'not-acquired' }, values: { U: 1 } },
}

const r2d: Scenario = {
  ...r2,
  id: 'R2d',
  title: 'Redlock, control: a node loses power and stays away for longer than the TTL, by an honest clock',
  reference: `${REDLOCK} (delayed restarts)`,
  text: 'The same as R2, but C serves again only when every lease that it may have forgotten has expired.',
  system: { kind: 'redlock', fsync: 'everysec', startDelay: 11, startClock: 'boot' },
  expect: { violations: [], units: { C1: 'done', C2: 'not-acquired' }, values: { U: 1 } },
}

/** C1 asks all five nodes and is stopped before it reads their answers. */
const r3a: Scenario = {
  id: 'R3a',
  title: 'Redlock without step 3: the answers of all nodes wait while the client is paused',
  reference: `${ARTICLE} (a long pause between the requests and their answers)`,
  text: 'Five OKs lie in the socket of C1 while it is stopped for 12 s. A client that leaves step 3 out (common in the wild) takes them for a fresh lease.',
  system: { kind: 'redlock', send: 'parallel', step3: false },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 2 }), C2: unit({ from: 10.5, work: 2 }) },
  faults: [{ at: 0.001, who: 'C1', do: 'pause', for: 12 }],
  until: 20,
  expect: { violations: ['lost-update', 'overlap'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const r3b: Scenario = {
  ...r3a,
  id: 'R3b',
  title: 'Redlock, control: the same pause, step 3 done with a clock that counts it',
  reference: `${ANSWER} (the check after the majority); ${REDLOCK} (step 3)`,
  text: 'The client computes that 12 s have passed since step 1, which is more than its TTL: not acquired. This is the case in which the published algorithm is right.',
  system: { kind: 'redlock', send: 'parallel' },
  expect: { violations: [], units: { C1: 'not-acquired', C2: 'done' }, values: { U: 1 } },
}

const r3c: Scenario = {
  ...r3a,
  id: 'R3c',
  title: 'Redlock: the machine of the client is suspended, and its clock does not count that',
  reference: `${REDLOCK} (step 3); CLOCK_MONOTONIC stands still while Linux is suspended`,
  text: 'Step 3 is done, but by a monotonic clock that stood still during the suspension: no time seems to have passed.',
  system: { kind: 'redlock', send: 'parallel' },
  faults: [{ at: 0.001, who: 'C1', do: 'suspend', for: 12 }],
}

const r3cw: Scenario = {
  ...r3a,
  id: 'R3cw',
  title: 'Redlock: the wall clock of the client is set back by the length of the pause',
  reference: `${REDLOCK} (step 3)`,
  text: 'Step 3 is done by the wall clock, which is set back by 12 s while the client is paused.',
  system: { kind: 'redlock', send: 'parallel', clock: 'wall' },
  faults: [
    { at: 0.001, who: 'C1', do: 'pause', for: 12 },
    { at: 6, who: 'C1', do: 'stepClock', clock: 'wall', by: -12 },
  ],
}

const r4: Scenario = {
  id: 'R4',
  title: 'Redlock: a pause after step 3',
  reference: `${ARTICLE} (no check can be made after the last check)`,
  text: 'C1 has a valid lease, reads, and is paused. Its lease ends as it should, C2 has its turn, C1 wakes and writes. No step of the algorithm comes after step 3.',
  system: { kind: 'redlock' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ check: false }), C2: unit({ from: 10.5 }) },
  faults: [{ at: 'C1 after read', do: 'pause', for: 12 }],
  until: 16,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const r4check: Scenario = {
  ...r4,
  id: 'R4check',
  title: 'Redlock: a pause after a check that the algorithm does not ask for',
  text: 'C1 is more careful than the algorithm and looks at its validity right before the write. The pause comes after that look.',
  clients: { C1: unit(), C2: unit({ from: 10.5 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 12 }],
}

const r5: Scenario = {
  id: 'R5',
  title: 'Redlock: a write that the network keeps for 90 seconds',
  reference: `${ARTICLE} (the network delays a request)`,
  text: 'C1 writes while its lease is valid. The write arrives when C2 is long done, and there is no number that could tell the resource which is which.',
  system: { kind: 'redlock' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit(), C2: unit({ from: 10.5 }) },
  faults: [{ at: 0, do: 'hold', from: 'C1', to: 'U', label: 'write', for: 90 }],
  until: 100,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

const r6: Scenario = {
  ...r2,
  id: 'R6',
  title: 'Redlock: the delayed restart is measured by a wall clock, and the clock jumps',
  reference: `${REDLOCK} (delayed restarts)`,
  text: 'The same as R2d, but the delay is measured by the wall clock of C, which jumps by 20 s while the node is away.',
  system: { kind: 'redlock', fsync: 'everysec', startDelay: 11, startClock: 'wall' },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 1 }) },
  faults: [
    { at: 0, do: 'cut', from: 'C1', to: ['D', 'E'] },
    { at: 0, do: 'cut', from: 'C2', to: ['A', 'B'] },
    { at: 0.2, who: 'C', do: 'powerOff' },
    { at: 0.3, who: 'C', do: 'stepClock', clock: 'wall', by: 20 },
    { at: 0.5, who: 'C', do: 'start' },
  ],
}

const r7: Scenario = {
  id: 'R7',
  title: 'Redlock, control: the clock of one node is set back',
  reference: REDLOCK,
  text: 'C1 dies. The clock of C was set back by 30 s, so its key stays that much longer: C2, which sees only C, D and E, waits, but nothing unsafe comes of it.',
  system: { kind: 'redlock' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 2, acquire: { wait: 60 } }) },
  faults: [
    { at: 0, do: 'cut', from: 'C1', to: ['D', 'E'] },
    { at: 0, do: 'cut', from: 'C2', to: ['A', 'B'] },
    { at: 1, who: 'C', do: 'stepClock', clock: 'wall', by: -30 },
    { at: 1.5, who: 'C1', do: 'kill' },
  ],
  until: 50,
  expect: {
    violations: [],
    units: { C1: 'unfinished', C2: 'done' },
    values: { U: 1 },
    grants: { C2: [{ atLeast: 39, atMost: 42 }] },
  },
}

/** Where Redlock fails, and where it does not. */
export const REDLOCK_CASES: readonly Scenario[] = [r1, r2, r2c, r2d, r3a, r3b, r3c, r3cw, r4, r4check, r5, r6, r7]
