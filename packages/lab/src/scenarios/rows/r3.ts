import type { Scenario } from '../format.js'
import { ANSWER, ARTICLE, REDLOCK, unit } from './common.js'

/** C1 asks all five nodes and is stopped before it reads their answers. */
export const r3a: Scenario = {
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

export const r3b: Scenario = {
  ...r3a,
  id: 'R3b',
  title: 'Redlock, control: the same pause, step 3 done with a clock that counts it',
  reference: `${ANSWER} (the check after the majority); ${REDLOCK} (step 3)`,
  text: 'The client computes that 12 s have passed since step 1, which is more than its TTL: not acquired. This is the case in which the published algorithm is right.',
  system: { kind: 'redlock', send: 'parallel' },
  expect: { violations: [], units: { C1: 'not-acquired', C2: 'done' }, values: { U: 1 } },
}

export const r3c: Scenario = {
  ...r3a,
  id: 'R3c',
  title: 'Redlock: the machine of the client is suspended, and its clock does not count that',
  reference: `${REDLOCK} (step 3); CLOCK_MONOTONIC stands still while Linux is suspended`,
  text: 'Step 3 is done, but by a monotonic clock that stood still during the suspension: no time seems to have passed.',
  system: { kind: 'redlock', send: 'parallel' },
  faults: [{ at: 0.001, who: 'C1', do: 'suspend', for: 12 }],
}

export const r3cw: Scenario = {
  ...r3a,
  id: 'R3cw',
  title: 'Redlock: the wall clock of the client is set back by the length of the pause',
  reference: `${REDLOCK} (step 3)`,
  text: 'Step 3 is done by the wall clock, which somebody sets back by 12 s while the client is paused.',
  system: { kind: 'redlock', send: 'parallel', clock: 'wall' },
  faults: [
    { at: 0.001, who: 'C1', do: 'pause', for: 12 },
    { at: 6, who: 'C1', do: 'stepClock', clock: 'wall', by: -12 },
  ],
}
