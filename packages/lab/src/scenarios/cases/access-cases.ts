import type { FormatOf } from '../../cluster/index.js'
import type { Scenario } from '../format.js'
import { acquireFrom, ANY_TIME, cluster, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

const busy = { do: 'client', action: 'loop', lock: 'busy', count: 100, hold: 0.005 } as const

/** N3 is down while a later version writes on its disk; then it is started again. */
function downgrade(id: string, title: string, file: FormatOf, text: string, refusal: string): Scenario {
  return {
    id,
    title,
    reference: 'a folder of a later version is refused, and left as it is',
    text,
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: { C1: [busy, { do: 'wait', until: 8 }, { ...busy, as: 'after' }], C2: holdUntil(20) },
    faults: [
      { at: 5, do: 'system', action: 'down', who: 'N3', how: 'kill' },
      { at: 6, do: 'system', action: 'format', who: 'N3', file, format: 2 },
      { at: 7, do: 'start', who: 'N3' },
    ],
    until: 25,
    expect: {
      ...NO_VIOLATIONS,
      members: { N3: 'refused' },
      refusals: { N1: '', N2: '', N3: { contains: refusal } },
      running: 2,
      failed: 0,
      facts: { C1: { loop: { done: 100 }, after: { done: 100 } }, C2: KEPT_HOLD },
    },
  }
}

export const ACCESS_CASES: readonly Scenario[] = [
  downgrade(
    'W9',
    'A member is started on the folder of a later version: it refuses, and the others keep serving',
    'identity',
    'The format of the folder is one that this version does not know.',
    'N3/identity has format 2; this program reads format 1',
  ),
  downgrade(
    'W9s',
    'The newest snapshot of a member is of a later format: it refuses, and the others keep serving',
    'snapshot',
    'The older one is whole, and must not stand in for it.',
    'has format 2; this program reads format 1',
  ),
  downgrade(
    'W9l',
    'The last frame of a log is of a later format: it refuses, and the others keep serving',
    'log',
    'A frame that is only dropped here was acknowledged by the version that wrote it.',
    'has format 2; this program reads format 1',
  ),
  {
    id: 'W12',
    title: 'Credentials expire during a hold: it is lost at its own deadline, and can still be released',
    reference: 'renewals are refused permanently; a release needs no right',
    text: 'C1 hears at every renewal that its credentials are refused, and calls its lock held until its deadline. C3 releases its lock in time, and its next request is refused.',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 7 },
        { do: 'client', action: 'state', as: 'before' },
        { do: 'client', action: 'lost' },
        { do: 'client', action: 'state' },
        { do: 'client', action: 'take', lock: 'M', as: 'again' },
      ],
      C2: acquireFrom(1),
      C3: [
        { do: 'client', action: 'take', lock: 'M' },
        { do: 'wait', until: 7 },
        { do: 'client', action: 'state' },
        { do: 'client', action: 'give' },
        { do: 'client', action: 'take', lock: 'M', as: 'again' },
      ],
      C4: acquireFrom(1, { lock: 'M' }),
    },
    faults: [
      { at: 5, do: 'system', action: 'expire', who: 'C1' },
      { at: 5, do: 'system', action: 'expire', who: 'C3' },
    ],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: {
          before: { state: 'held' },
          lost: { reason: 'deadline', at: { atLeast: 10, atMost: 14.5 } },
          state: { state: 'lost' },
          again: { outcome: 'unauthenticated' },
        },
        C3: { state: { state: 'held' }, give: { released: true }, again: { outcome: 'unauthenticated' } },
      },
      order: { L: ['C1', 'C2'], M: ['C3', 'C4'] },
      grantedAt: { L: [ANY_TIME, { atLeast: 11, atMost: 16 }], M: [ANY_TIME, { atLeast: 7, atMost: 7.2 }] },
      accessRefused: { 'C1 renew unauthenticated': { atLeast: 1 } },
    },
  },
  {
    id: 'W13',
    title: 'The right to a lock is revoked during a hold, others stay: the hold is kept, and no new one is granted',
    reference: 'rights are asked for when a lock is wanted; renewals need any right to acquire',
    text: 'Renewals are of a session, which has no names. The hold stays until it is released, or its session ends.',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take', lock: 'a/L' },
        { do: 'wait', until: 6 },
        { do: 'client', action: 'take', lock: 'a/M', as: 'forbidden' },
        { do: 'client', action: 'take', lock: 'b/M', as: 'allowed' },
        { do: 'wait', until: 30 },
        { do: 'client', action: 'state' },
        { do: 'client', action: 'give' },
        { do: 'client', action: 'take', lock: 'a/L', as: 'again' },
      ],
      C2: acquireFrom(1, { lock: 'a/L' }),
    },
    faults: [{ at: 5, do: 'system', action: 'allow', who: 'C1', acquire: ['b'] }],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: {
          ...KEPT_HOLD,
          forbidden: { outcome: 'forbidden' },
          allowed: { outcome: 'granted' },
          again: { outcome: 'forbidden' },
        },
      },
      order: { 'a/L': ['C1', 'C2'], 'b/M': ['C1'] },
      grantedAt: { 'a/L': [ANY_TIME, { atLeast: 30, atMost: 30.2 }] },
      accessRefused: { 'C1 acquire forbidden': 2 },
    },
  },
  {
    id: 'W13r',
    title: 'Every right to acquire is revoked during a hold: renewals are refused, and it is lost at its own deadline',
    reference: 'rights are asked for when a lock is wanted; renewals need any right to acquire',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'wait', until: 6 },
        { do: 'client', action: 'take', lock: 'M', as: 'forbidden' },
        { do: 'client', action: 'state', as: 'before' },
        { do: 'client', action: 'lost' },
      ],
      C2: acquireFrom(1),
    },
    faults: [{ at: 5, do: 'system', action: 'allow', who: 'C1', read: [''] }],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: {
          forbidden: { outcome: 'forbidden' },
          before: { state: 'held' },
          lost: { reason: 'deadline', at: { atLeast: 10, atMost: 14.5 } },
        },
      },
      order: { L: ['C1', 'C2'] },
      grantedAt: { L: [ANY_TIME, { atLeast: 11, atMost: 16 }] },
      accessRefused: { 'C1 renew forbidden': { atLeast: 1 } },
    },
  },
]
