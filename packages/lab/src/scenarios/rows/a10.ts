import type { Scenario } from '../format.js'
import { unit } from './common.js'

export const a10: Scenario = {
  id: 'A10',
  title: 'A guard that restarts: its mark is durable with the write',
  reference: 'A mark that lives only in memory',
  text: 'The resource is killed right after it has acknowledged the write of C2. Its mark is still there when it comes back, and C1 is refused.',
  system: { kind: 'leasehold' },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit({ work: 1 }), C2: unit({ from: 2 }) },
  faults: [
    { at: 'C1 in write', do: 'pause', for: 15 },
    { at: 'C2 after write', who: 'R', do: 'powerOff' },
    { at: 14, who: 'R', do: 'start' },
  ],
  until: 30,
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { R: 1 } },
}

export const a10bad: Scenario = {
  ...a10,
  id: 'A10bad',
  title: 'A broken guard that restarts: it acknowledges before its mark is durable',
  text: 'The mark is lost with the power; the stale write is accepted.',
  resources: { R: { kind: 'G*', acknowledgesBeforeSync: true } },
  expect: { violations: ['mark-order'], units: { C1: 'done', C2: 'done' } },
}
