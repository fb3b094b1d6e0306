import type { Scenario } from '../format.js'
import { unit } from './common.js'
import { cluster, QUIET } from './common-cluster.js'

const clients = {
  C1: unit({ work: 3 }),
  // In the queue at the same time.
  C2: unit({ from: 1, acquire: { wait: '1m' } }),
  C3: unit({ from: 2, acquire: { wait: '1m' } }),
} as const
const DONE = { units: { C1: 'done', C2: 'done', C3: 'done' }, values: { R: 3 } } as const

/** The number of the request, where waiters are not served in their order. */
const q10r: Scenario = {
  id: 'Q10r',
  title: 'The token is the number of the request, and who has come last is served first',
  reference:
    'a token that is the number of the request goes back when the queue is not strictly first come, first served',
  text: 'C3 has come last, is served first and writes with token 3. Then C2 has the lock, rightly, with token 2: the guard must refuse it.',
  system: { kind: 'queue', token: 'request', order: 'newest' },
  resources: { R: { kind: 'G*' } },
  clients,
  until: 10,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused', C3: 'done' }, values: { R: 2 } },
}

export const Q10_ROWS: readonly Scenario[] = [
  q10r,
  {
    ...q10r,
    id: 'Q10g',
    title: 'The same queue with the number of the grant as token, control',
    text: 'Whoever is served next gets the next token.',
    system: { kind: 'queue', token: 'grant', order: 'newest' },
    expect: { ...QUIET, ...DONE },
  },
  {
    ...q10r,
    id: 'Q10f',
    title: 'The number of the request as token, in a strict queue, control',
    text: 'Served in the order of their requests, their numbers grow as well.',
    system: { kind: 'queue', token: 'request', order: 'fifo' },
    expect: { ...QUIET, ...DONE },
  },
  {
    ...q10r,
    id: 'Q10p',
    title: 'The same clients at the production service, control',
    text: 'The token is the number of the log entry that grants.',
    system: cluster(),
    expect: { ...QUIET, ...DONE, order: { L: ['C1', 'C2', 'C3'] } },
  },
]
