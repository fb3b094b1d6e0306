import type { Scenario, Step } from '../format.js'
import { unit } from './common.js'

/** Holds the lock for a moment. */
const touch: readonly Step[] = [{ do: 'acquire' }, { do: 'release' }]

export const r11: Scenario = {
  id: 'R11',
  title: 'A token from INCR on an asynchronously replicated Redis',
  reference: 'Fencing tokens by a counter in the script that sets the lock, as in Redisson',
  text: 'The new primary has not heard of the last increments: it gives the same token again.',
  system: { kind: 'redis', replica: true, counter: 6 },
  clients: { C1: touch, C2: [{ do: 'wait', until: 2 }, ...touch] },
  faults: [
    { at: 0, do: 'cut', from: 'P', to: 'Q' },
    { at: 0.5, who: 'P', do: 'powerOff' },
    { at: 1, do: 'system', action: 'failover' },
  ],
  until: 5,
  expect: { violations: ['token-order'] },
}

export const r12: Scenario = {
  id: 'R12',
  title: 'A token from INCR on a Redis that evicts keys',
  reference: 'Fencing tokens by a counter, on an instance with maxmemory and an allkeys policy',
  text: 'The counter is evicted between two grants and begins again at 1. A guard that has seen 7 refuses the rightful holder from then on.',
  system: { kind: 'redis', counter: 6 },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit(), C2: unit({ from: 2 }) },
  faults: [{ at: 1, do: 'system', action: 'evict', key: 'L:token' }],
  until: 5,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused' }, values: { R: 1 } },
}
