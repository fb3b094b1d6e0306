import type { Scenario } from '../format.js'
import { unit } from './common.js'

export const r13: Scenario = {
  id: 'R13',
  title: 'The number in the name of a ZooKeeper node as token',
  reference: 'Sequential nodes in a container node that is removed when it is empty',
  text: 'The number counts the children of one parent. The parent is removed when nobody waits, and the next one counts from 0.',
  system: { kind: 'zookeeper', token: 'sequence', sequence: 33 },
  resources: { R: { kind: 'G*' } },
  clients: { C1: unit(), C2: unit({ from: 65 }) },
  until: 70,
  expect: { violations: ['token-order'], units: { C1: 'done', C2: 'refused' }, values: { R: 1 } },
}

export const r13c: Scenario = {
  ...r13,
  id: 'R13c',
  title: 'The transaction number (czxid) of a ZooKeeper node as token, control',
  text: 'The transaction number is of the whole ensemble and only grows.',
  system: { kind: 'zookeeper', token: 'czxid', sequence: 33 },
  expect: { violations: [], units: { C1: 'done', C2: 'done' }, values: { R: 2 } },
}
