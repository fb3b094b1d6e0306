import type { Scenario } from '../format.js'
import { unit } from './common.js'

/** Ten grants, then a unit that is stopped in front of its write. */
const busy = [
  ...Array.from({ length: 10 }, () => [{ do: 'acquire' as const }, { do: 'release' as const }]).flat(),
  ...unit({ work: 1 }),
]

export const r14: Scenario = {
  id: 'R14',
  title: 'A store whose tokens are revisions is restored from a plain backup',
  reference: 'Revisions after a snapshot restore go back, for example in etcd',
  text: 'The revisions after the backup are given a second time: C2 gets a lower token than C1 has had, is refused, and the stopped write of C1 is taken.',
  system: { kind: 'revision', restore: 'plain' },
  resources: { R: { kind: 'G*' } },
  clients: { C1: busy, C2: unit({ from: 4 }) },
  faults: [
    // Between two grants: nobody holds anything in the backup.
    { at: 0.057, do: 'system', action: 'backup' },
    { at: 'C1 in write', do: 'pause', for: 8 },
    { at: 3, do: 'system', action: 'restore' },
  ],
  until: 12,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused' }, values: { R: 1 } },
}

export const r14c: Scenario = {
  ...r14,
  id: 'R14c',
  title: 'The same restore with a raised epoch, control',
  text: 'Every token of the new epoch is above every token of the old one: C2 goes on at once, and C1 is refused.',
  system: { kind: 'revision', restore: 'epoch' },
  expect: { violations: [], units: { C1: 'refused', C2: 'done' }, values: { R: 1 } },
}
