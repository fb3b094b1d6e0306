import type { Scenario } from '../format.js'
import { unit } from './common.js'

export const a8: Scenario = {
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

export const a8m: Scenario = {
  ...a8,
  id: 'A8m',
  title: 'A resource that asks the lock service, and keeps a mark as well',
  text: 'The mark is compared in the same step as the write: the late write is refused.',
  resources: { V: { kind: 'V', stall: 12, mark: true } },
  expect: { violations: [] },
}
