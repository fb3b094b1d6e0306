import type { Scenario } from '../format.js'
import { REDLOCK, unit } from './common.js'
import { r2 } from './r2.js'

export const r6: Scenario = {
  ...r2,
  id: 'R6',
  title: 'Redlock: the delayed restart is measured by a wall clock, and the clock jumps',
  reference: `${REDLOCK} (delayed restarts)`,
  text: 'The same as R2d, but the delay is measured by the wall clock of C, which jumps by 20 s while the node is away.',
  system: { kind: 'redlock', fsync: 'everysec', startDelay: 11, startClock: 'wall' },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 1 }) },
  faults: [
    { at: 0, do: 'cut', from: 'C1', to: ['D', 'E'] },
    { at: 0, do: 'cut', from: 'C2', to: ['A', 'B'] },
    { at: 0.2, who: 'C', do: 'powerOff' },
    { at: 0.3, who: 'C', do: 'stepClock', clock: 'wall', by: 20 },
    { at: 0.5, who: 'C', do: 'start' },
  ],
}
