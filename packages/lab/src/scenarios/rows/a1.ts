import type { Scenario } from '../format.js'
import { ARTICLE, unit } from './common.js'

export const a1: Scenario = {
  id: 'A1',
  title: 'A pause after the check, and a resource that checks nothing',
  reference: `${ARTICLE} (protecting a resource with a lock)`,
  text: 'The lock service does everything right: the session of C1 ends, C2 gets a greater token. But nobody looks at tokens, so the late write of C1 overwrites that of C2.',
  system: { kind: 'leasehold' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 1 }), C2: unit({ from: 2 }) },
  faults: [{ at: 'C1 in write', do: 'pause', for: 15 }],
  until: 20,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}
