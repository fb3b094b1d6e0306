import type { Scenario, Step } from '../format.js'
import { unit } from './common.js'

/** C1 reads, and is paused in front of its write; C2 reads while nothing has been written since, and writes later. */
const late: readonly Step[] = unit({ from: 2, work: 8 })

export const a4: Scenario = {
  id: 'A4',
  title: 'A stale write before the first write of the next holder: reading does not raise the mark',
  reference: 'Fencing tokens that are compared at writes only',
  text: 'C2 has read, but not yet written, when the write of C1 arrives: its token is the greatest that the resource has seen, so it is accepted and acknowledged. Then C2 writes what it computed from the old value: the update of C1 is lost.',
  system: { kind: 'leasehold' },
  resources: { G: { kind: 'G', initial: 5 } },
  clients: { C1: unit({ work: 1 }), C2: late },
  faults: [{ at: 'C1 in write', do: 'pause', for: 14 }],
  until: 30,
  expect: { violations: ['lost-update'], units: { C1: 'done', C2: 'done' }, values: { G: 6 } },
}

export const a4g: Scenario = {
  ...a4,
  id: 'A4g',
  title: 'A stale write before the first write of the next holder: opening raises the mark',
  text: 'The same as A4, but a resource is opened with the token before it is read: the mark is up before the write of C1 arrives.',
  resources: { R: { kind: 'G*', initial: 5 } },
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { R: 6 } },
}
