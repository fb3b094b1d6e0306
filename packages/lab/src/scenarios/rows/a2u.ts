import type { Scenario } from '../format.js'
import { a2 } from './a2.js'

export const a2u: Scenario = {
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
