import type { Scenario } from '../format.js'
import { ARTICLE, REDLOCK, unit } from './common.js'

export const r2: Scenario = {
  id: 'R2',
  title: 'Redlock: a node loses power before its key is on disk (fsync every second)',
  reference: `${ARTICLE} (a node crashes and its key is lost); ${REDLOCK} (performance, crash recovery and fsync)`,
  text: 'C1 has A, B and C. C loses power before its next fsync and comes back without the key. C2 gets C, D and E.',
  system: { kind: 'redlock', fsync: 'everysec' },
  resources: { U: { kind: 'U' } },
  clients: { C1: unit({ work: 5 }), C2: unit({ from: 1 }) },
  faults: [
    { at: 0, do: 'cut', from: 'C1', to: ['D', 'E'] },
    { at: 0, do: 'cut', from: 'C2', to: ['A', 'B'] },
    { at: 0.2, who: 'C', do: 'powerOff' },
    { at: 0.4, who: 'C', do: 'start' },
  ],
  until: 12,
  expect: { violations: ['lost-update', 'overlap'], units: { C1: 'done', C2: 'done' }, values: { U: 1 } },
}

export const r2c: Scenario = {
  ...r2,
  id: 'R2c',
  title: 'Redlock, control: a node loses power, fsync always',
  text: 'The same as R2 with every write on disk before its answer: C comes back with the key, and C2 does not get a majority.',
  system: { kind: 'redlock', fsync: 'always' },
  expect: { violations: [], units: { C1: 'done', C2: 'not-acquired' }, values: { U: 1 } },
}

export const r2d: Scenario = {
  ...r2,
  id: 'R2d',
  title: 'Redlock, control: a node loses power and stays away for longer than the TTL, by an honest clock',
  reference: `${REDLOCK} (delayed restarts)`,
  text: 'The same as R2, but C serves again only when every lease that it may have forgotten is over.',
  system: { kind: 'redlock', fsync: 'everysec', startDelay: 11, startClock: 'boot' },
  expect: { violations: [], units: { C1: 'done', C2: 'not-acquired' }, values: { U: 1 } },
}
