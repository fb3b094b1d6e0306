import type { Scenario } from '../format.js'
import { REDLOCK, unit } from './common.js'

export const r8: Scenario = {
  id: 'R8',
  title: 'One Redis with a replica: the primary dies before the key is replicated',
  reference: `${REDLOCK} (why failover-based implementations are not enough)`,
  text: 'The trace of the Redis manual: the replica that is made the primary has never heard of the lock.',
  system: { kind: 'redis', replica: true },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 3 }), C2: unit({ from: 1 }) },
  faults: [
    { at: 0, do: 'cut', from: 'P', to: 'Q' },
    { at: 0.1, who: 'P', do: 'powerOff' },
    { at: 0.5, do: 'system', action: 'failover' },
  ],
  until: 40,
  expect: { violations: ['lost-update', 'overlap'], values: { U: 1 } },
}
