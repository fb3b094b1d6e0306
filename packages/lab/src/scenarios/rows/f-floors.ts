import type { Scenario } from '../format.js'
import { unit } from './common.js'
import { cluster, QUIET } from './common-cluster.js'

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
  expect: { ...QUIET, units: { C1: 'refused', C2: 'done', C3: 'done' }, values: { R: 2 }, epoch: 1 },
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
  expect: { ...QUIET, units: { C2: 'refused', C3: 'done', C4: 'done' }, values: { R: 2 }, epoch: 2 },
}

/** Services whose disks are lost, with floors and without. */
export const FLOOR_ROWS: readonly Scenario[] = [
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
