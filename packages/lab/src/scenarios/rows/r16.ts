import type { Scenario } from '../format.js'
import { unit } from './common.js'

export const r16: Scenario = {
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

export const r16c: Scenario = {
  ...r16,
  id: 'R16c',
  title: 'A lease that is counted from the sending of the question, control',
  text: 'The same answer, counted from when it was asked for: C1 knows in time that its lease is over.',
  system: { kind: 'redis', deadline: 'send' },
  expect: { violations: [], units: { C1: 'lost', C2: 'done' }, values: { U: 1 } },
}
