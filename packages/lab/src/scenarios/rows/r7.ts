import type { Scenario } from '../format.js'
import { REDLOCK, unit } from './common.js'

export const r7: Scenario = {
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
