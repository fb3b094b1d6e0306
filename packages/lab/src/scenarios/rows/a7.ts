import type { Scenario } from '../format.js'
import { ARTICLE } from './common.js'

export const a7: Scenario = {
  id: 'A7',
  title: 'A resource that cannot check, and a lock delay that is long enough',
  reference: `${ARTICLE}; lock delays are those of Chubby (Burrows 2006, 2.4)`,
  text: 'C1 crashes with a message on its way. Nobody gets the lock for 15 s after the end of its session, so the effect comes before C2.',
  system: { kind: 'leasehold' },
  resources: { X: { kind: 'X' } },
  clients: {
    C1: [{ do: 'acquire', lockDelay: 15_000 }, { do: 'work', for: 0.5 }, { do: 'effect' }, { do: 'work', for: 10 }],
    C2: [{ do: 'wait', until: 2 }, { do: 'acquire', wait: 60_000 }, { do: 'effect' }, { do: 'release' }],
  },
  faults: [
    { at: 0, do: 'hold', from: 'C1', to: 'X', label: 'effect', for: 20 },
    { at: 1, who: 'C1', do: 'kill' },
  ],
  until: 45,
  expect: { violations: [], units: { C2: 'done' }, values: { X: 2 }, grants: { C2: [{ atLeast: 25, atMost: 28 }] } },
}

export const a7late: Scenario = {
  ...a7,
  id: 'A7late',
  title: 'A resource that cannot check, and a message that is slower than the lock delay',
  text: 'A lock delay makes it rare, not impossible.',
  faults: [
    { at: 0, do: 'hold', from: 'C1', to: 'X', label: 'effect', for: 30 },
    { at: 1, who: 'C1', do: 'kill' },
  ],
  expect: { violations: ['late-effect'], units: { C2: 'done' }, values: { X: 2 } },
}
