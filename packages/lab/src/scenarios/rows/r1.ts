import type { Scenario } from '../format.js'
import { ARTICLE, REDLOCK, unit } from './common.js'

export const r1: Scenario = {
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
