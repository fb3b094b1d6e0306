import type { Scenario } from '../format.js'
import { unit } from './common.js'

export const r15: Scenario = {
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

export const r15c: Scenario = {
  ...r15,
  id: 'R15c',
  title: 'A row lock whose expiry the database computes, control',
  text: 'With the time of the database in the statement, this trace does no harm.',
  system: { kind: 'shedlock', atMost: 5, time: 'database' },
  expect: { violations: [], units: { C1: 'done', C2: 'not-acquired' }, values: { U: 1 } },
}
