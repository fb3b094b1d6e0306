import type { Scenario, Step } from '../format.js'
import { REDLOCK, unit } from './common.js'

const slow: readonly Step[] = [{ do: 'acquire' }, { do: 'work', for: 11 }, { do: 'release' }]

export const r9: Scenario = {
  id: 'R9',
  title: 'One Redis: the lock is given back by plain DEL',
  reference: `${REDLOCK} (correct implementation with a single instance: why DEL is not enough)`,
  text: 'C1 works longer than its lease. Its DEL removes the lock of C2, and C3 gets it as well.',
  system: { kind: 'redis', release: 'del' },
  resources: { U: { kind: 'U' } },
  clients: { C1: slow, C2: unit({ from: 10.5, work: 4 }), C3: unit({ from: 12 }) },
  until: 20,
  expect: { violations: ['lost-update', 'overlap'], units: { C2: 'done', C3: 'done' }, values: { U: 1 } },
}

export const r9c: Scenario = {
  ...r9,
  id: 'R9c',
  title: 'One Redis, control: the lock is given back by compare-and-delete',
  text: 'The same as R9 with the published script: C1 deletes nothing, and C3 does not get the lock.',
  system: { kind: 'redis', release: 'compare-and-delete' },
  expect: { violations: [], units: { C2: 'done', C3: 'not-acquired' }, values: { U: 1 } },
}
