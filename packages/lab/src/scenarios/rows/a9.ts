import type { Scenario } from '../format.js'
import { ARTICLE } from './common.js'

export const a9: Scenario = {
  id: 'A9',
  title: 'A lock that only saves work may fail',
  reference: `${ARTICLE} (efficiency or correctness)`,
  text: 'One store without fsync forgets the lock, and the work is done twice. That is allowed: these holds are called approximate and have no token, so nobody can guard anything with them.',
  system: { kind: 'redis', fsync: 'no', approximate: true },
  clients: {
    C1: [{ do: 'acquire' }, { do: 'work', for: 5 }, { do: 'release' }],
    C2: [{ do: 'wait', until: 3 }, { do: 'acquire' }, { do: 'work', for: 1 }, { do: 'release' }],
  },
  faults: [
    { at: 1, who: 'P', do: 'powerOff' },
    { at: 2, who: 'P', do: 'start' },
  ],
  until: 10,
  expect: { violations: [], approximate: true, beliefOverlapMs: { atLeast: 900 } },
}
