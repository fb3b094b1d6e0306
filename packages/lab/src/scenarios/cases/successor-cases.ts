import type { Scenario } from '../format.js'
import { cluster, NO_VIOLATIONS, unit } from './parts.js'

const p21: Scenario = {
  id: 'P21',
  title: 'A lock moves to another service, which was founded under a higher epoch',
  reference: 'the epoch is in the high bits of every token',
  text: 'The second service starts at its first entry, and yet its tokens are above all of the first. C1, which the first has granted, writes too late and is refused.',
  system: cluster({ epoch: 1, successor: { epoch: 2, clients: ['D1', 'D2'] } }),
  resources: { R: { kind: 'G*' } },
  clients: {
    // Entries and tokens of the first service.
    C2: [{ do: 'client', action: 'loop', lock: 'busy', count: 50, hold: 0.005 }, ...unit()],
    C1: unit({ from: 5 }),
    D1: unit({ from: 10 }),
    D2: unit({ from: 22 }),
  },
  faults: [
    { at: 'C1 in write', do: 'pause', for: 15 },
    // The first service is switched off before the lock moves.
    ...['N1', 'N2', 'N3'].map((who) => ({ at: 8, do: 'kill', who }) as const),
  ],
  until: 30,
  expect: {
    ...NO_VIOLATIONS,
    units: { C1: 'refused', C2: 'done', D1: 'done', D2: 'done' },
    values: { R: 3 },
    epoch: 1,
  },
}

export const MOVED_LOCK_CASES: readonly Scenario[] = [
  p21,
  {
    ...p21,
    id: 'P21e',
    title: 'A lock moves to another service, founded under the same epoch: its tokens go back',
    text: 'The second service counts from 1 again. Its holder is refused by the guard, which has seen more, and the late write of C1 is taken.',
    system: cluster({ epoch: 1, successor: { epoch: 1, clients: ['D1', 'D2'] } }),
    expect: {
      violations: ['invariant', 'token-order'],
      units: { C1: 'done', C2: 'done', D1: 'refused', D2: 'refused' },
      values: { R: 2 },
    },
  },
]

const REFERENCE = 'tokens of a service whose disks were lost'

/** Members with the floors that they have outside the lab. */
const FLOORS = { settings: { clockFloors: true } }

const foundAgain: Scenario = {
  id: 'F1',
  title: 'A service is founded again on emptied disks: its tokens are above all of the first',
  reference: REFERENCE,
  text: 'Nothing of the first service is left but its tokens, in a guard and in the hands of C1. The second one counts from a floor of its clock, and the late write of C1 is refused.',
  system: cluster(FLOORS),
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit(), C2: unit({ from: 20 }), C3: unit({ from: 30 }) },
  faults: [
    { at: 'C1 in write', do: 'pause', for: 25 },
    { at: 10, do: 'system', action: 'foundAgain' },
  ],
  until: 40,
  expect: { ...NO_VIOLATIONS, units: { C1: 'refused', C2: 'done', C3: 'done' }, values: { R: 2 }, epoch: 1 },
}

const restoredTwice: Scenario = {
  id: 'F2',
  title: 'One backup is restored twice under the same epoch: no token comes twice',
  reference: 'the epoch that a restore suggests is the next one of the backup',
  text: 'Both restores are told the epoch that the backup suggests. The second one starts above the first, because time has passed.',
  system: cluster(FLOORS),
  resources: { R: { kind: 'G*' } },
  clients: {
    // What is held for longer than its session lives in the backup, and gets another token with each restore.
    C1: [{ do: 'client', action: 'take', lock: 'kept', persistent: true }],
    C2: unit({ from: 15 }),
    C3: unit({ from: 40 }),
    C4: unit({ from: 45 }),
  },
  faults: [
    { at: 5, do: 'system', action: 'backup' },
    { at: 8, do: 'system', action: 'restore', who: 'N1', epoch: 2 },
    { at: 'C2 in write', do: 'pause', for: 28 },
    { at: 30, do: 'system', action: 'restore', who: 'N1', epoch: 2 },
  ],
  until: 55,
  expect: { ...NO_VIOLATIONS, units: { C2: 'refused', C3: 'done', C4: 'done' }, values: { R: 2 }, epoch: 2 },
}

/** Services whose disks are lost, with floors and without. */
export const FLOOR_CASES: readonly Scenario[] = [
  foundAgain,
  {
    ...foundAgain,
    id: 'F1o',
    title: 'A service is founded again on emptied disks, without floors: it grants its tokens again',
    text: 'C1 and C2 have one token. The guard cannot tell them apart, and the late write of C1 overwrites that of C2.',
    system: cluster(),
    expect: {
      violations: ['invariant', 'lost-update', 'token-order'],
      units: { C1: 'done', C2: 'done', C3: 'done' },
      tokens: { L: [2, 2, 4] },
    },
  },
  restoredTwice,
  {
    ...restoredTwice,
    id: 'F2o',
    title: 'One backup is restored twice under the same epoch, without floors: its tokens are granted again',
    text: 'Also the persistent hold has one token in both restored services.',
    system: cluster(),
    expect: {
      violations: ['invariant', 'lost-update', 'token-order'],
      units: { C2: 'done', C3: 'done', C4: 'done' },
      tokens: { L: [3, 3, 5] },
    },
  },
]
