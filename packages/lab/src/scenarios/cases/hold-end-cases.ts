import type { Scenario } from '../format.js'
import { acquireFrom, cluster, ETCD, holdUntil, KEPT_HOLD, NO_VIOLATIONS, unit } from './parts.js'

/** Holds that are stolen or outlive their holder, and tokens that keep growing. */
export const HOLD_END_CASES: readonly Scenario[] = [
  {
    id: 'Q18',
    title: 'An operator takes the lock away: its holder is told, the next one has a greater token',
    reference: 'force release with actor and reason',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'lost' },
      ],
      C2: holdUntil(10, { wait: '1m' }).toSpliced(0, 0, { do: 'wait', until: 1 }),
      operator: [
        { do: 'wait', until: 3 },
        { do: 'client', action: 'steal', lock: 'L' },
      ],
    },
    until: 15,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: { lost: { reason: 'stolen', at: { atLeast: 3, atMost: 3.2 } } },
        C2: KEPT_HOLD,
        operator: { steal: { stolen: 1 } },
      },
      order: { L: ['C1', 'C2'] },
      freed: { C1: [{ reason: 'stolen' }] },
    },
  },
  {
    id: 'Q18a',
    title: 'An operator takes locks away while their holder has no connection: it is told when it is back',
    text: 'What was pushed meanwhile comes with the answer to the next renewal. Without it C1 would call both locks its own for as long as it renews.',
    reference: 'a push that is lost is made good',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'take', lock: 'M', as: 'second' },
        { do: 'wait', until: 30 },
        { do: 'client', action: 'state' },
      ],
      operator: [
        { do: 'wait', until: 4 },
        { do: 'client', action: 'steal', lock: 'L' },
        { do: 'wait', until: 4.5 },
        { do: 'client', action: 'steal', lock: 'M' },
      ],
      C2: acquireFrom(1),
    },
    faults: [
      { at: 3.9, do: 'system', action: 'reset', who: 'C1' },
      { at: 3.9, do: 'isolate', who: 'C1', for: 2 },
    ],
    until: 35,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: {
          'take lost': { reason: 'stolen', at: { atLeast: 5.9, atMost: 8 } },
          'second lost': { reason: 'stolen', at: { atLeast: 5.9, atMost: 8 } },
          state: { state: 'lost' },
        },
      },
      order: { L: ['C1', 'C2'] },
    },
  },
  {
    id: 'Q18b',
    title: 'Two locks are stolen, one before and one after a reconnect: the holder is notified of both',
    text: 'The disks are slow. C1 comes back between the two, asks what it has missed, and hears of the second one first.',
    reference: 'what is pushed on a new connection says nothing about what was lost with the old one',
    system: cluster({ settings: { blockingWrites: false } }),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'take', lock: 'M', as: 'second' },
        { do: 'wait', until: 30 },
        { do: 'client', action: 'state' },
      ],
      operator: [
        { do: 'wait', until: 4 },
        { do: 'client', action: 'steal', lock: 'L' },
        { do: 'wait', until: 4.8 },
        { do: 'client', action: 'steal', lock: 'M' },
      ],
    },
    faults: [
      { at: 3.9, do: 'system', action: 'reset', who: 'C1' },
      { at: 3.9, do: 'isolate', who: 'C1', for: 1 },
      ...['N1', 'N2', 'N3'].map(
        (who) => ({ at: 4.6, do: 'system', action: 'disk', who, trouble: 'slow', ms: 800, for: 3 }) as const,
      ),
    ],
    until: 35,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: {
          'take lost': { reason: 'stolen', at: { atLeast: 4.9, atMost: 10 } },
          'second lost': { reason: 'stolen', at: { atLeast: 4.9, atMost: 10 } },
          state: { state: 'lost' },
        },
      },
    },
  },
  {
    id: 'Q19',
    title: 'A persistent hold outlives its holder, until an operator acts',
    reference: 'https://github.com/hazelcast/hazelcast/issues/5652, https://issues.apache.org/jira/browse/CURATOR-605',
    system: cluster(),
    clients: {
      C1: [{ do: 'client', action: 'take', persistent: true }],
      C2: [
        { do: 'wait', until: 40 },
        { do: 'client', action: 'take', wait: 0, as: 'early' },
        { do: 'client', action: 'steal', lock: 'L' },
        { do: 'client', action: 'take' },
      ],
    },
    faults: [{ at: 3, do: 'kill', who: 'C1' }],
    until: 45,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C2: { early: { outcome: 'busy' }, steal: { stolen: 1 }, take: { outcome: 'granted' } } },
      order: { L: ['C1', 'C2'] },
    },
  },
  {
    id: 'Q20',
    title: 'An unused name is forgotten; when it is used again its tokens keep growing',
    reference: `${ETCD}: tokens of a re-created key`,
    system: cluster({ settings: { snapshotBytes: 4096 } }),
    clients: {
      C1: [
        { do: 'client', action: 'loop', count: 30 },
        { do: 'wait', until: 10 },
        { do: 'client', action: 'loop', count: 30, as: 'again' },
      ],
    },
    faults: [{ at: 6, do: 'system', action: 'blackout', for: 1 }],
    until: 30,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 30 }, again: { done: 30 } } }, events: { held: 60 } },
  },
  {
    id: 'Q21',
    title: 'Tokens beyond 2^53',
    reference: 'JSON numbers and doubles end at 2^53',
    system: cluster({ epoch: 40 }),
    resources: { R: { kind: 'G*' } },
    clients: {
      C1: [
        { do: 'client', action: 'take', as: 'first' },
        { do: 'client', action: 'give', hold: 'first' },
      ],
      C2: [{ do: 'wait', until: 1 }, { do: 'acquire' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
      C3: [{ do: 'wait', until: 2 }, { do: 'acquire' }, { do: 'read' }, { do: 'write' }, { do: 'release' }],
    },
    until: 5,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { first: { wide: true } } },
      units: { C2: 'done', C3: 'done' },
      values: { R: 2 },
      epoch: 40,
    },
  },
  {
    id: 'Q21s',
    title: 'Tokens beyond 2^53 that differ by little: a late write is refused all the same',
    text: 'As doubles all tokens of a day would be one.',
    reference: 'JSON numbers and doubles end at 2^53',
    system: cluster({ epoch: 20_000 }),
    resources: { R: { kind: 'G*', initial: 5 } },
    clients: { C1: unit({ work: 1 }), C2: unit({ from: 2, work: 8, acquire: { wait: '1m' } }) },
    faults: [{ at: 'C1 in write', do: 'pause', for: 14 }],
    until: 30,
    expect: { ...NO_VIOLATIONS, units: { C1: 'refused', C2: 'done' }, values: { R: 6 }, epoch: 20_000 },
  },
  {
    id: 'Q22',
    title: 'A register is written under a hold that was stolen meanwhile: refused',
    text: 'C1 has not heard of it yet, and what it writes was computed from the value that C2 has replaced.',
    reference: 'a fenced write needs the hold at the moment of the write',
    system: cluster(),
    clients: {
      C1: [
        { do: 'client', action: 'take' },
        { do: 'client', action: 'put', key: 'k', value: 'a', ifVersion: '0', fence: 'take', as: 'first' },
        { do: 'wait', until: 6 },
        { do: 'client', action: 'state' },
        { do: 'client', action: 'put', key: 'k', value: 'late', fence: 'take' },
        { do: 'client', action: 'get', key: 'k' },
      ],
      C2: [
        { do: 'wait', until: 1 },
        { do: 'client', action: 'take', wait: '1m' },
        { do: 'client', action: 'put', key: 'k', value: 'b', fence: 'take' },
      ],
      operator: [
        { do: 'wait', until: 5 },
        { do: 'client', action: 'steal', lock: 'L' },
      ],
    },
    faults: [{ at: 4.9, do: 'clog', from: 'leader', to: 'C1', for: 2 }],
    until: 12,
    expect: {
      ...NO_VIOLATIONS,
      facts: {
        C1: { first: { done: true }, state: { state: 'held' }, put: { outcome: 'not-holder' }, get: { value: 'b' } },
        C2: { put: { done: true } },
      },
      order: { L: ['C1', 'C2'] },
      events: { put: 2 },
    },
  },
]
