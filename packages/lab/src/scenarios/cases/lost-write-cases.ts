import type { Scenario } from '../format.js'
import { HARSH, large, replaced, SMALL, TORN, trouble } from './disk-parts.js'
import { busy, cluster, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

/** Writes that were read back and then lost, and disks that are set back. */
export const LOST_WRITE_CASES: readonly Scenario[] = [
  {
    id: 'D16',
    title: 'A follower is killed between a write and its sync, acknowledges what it reads back, and loses power',
    reference: 'what a killed process wrote can be read, and is not on the disk: it must be, before it counts',
    text: 'The leader needs the follower for its quorum. It is cut off afterwards, so that only the two others know of the grant.',
    system: cluster({ disk: HARSH, settings: { blockingWrites: false } }),
    clients: {
      C1: [{ do: 'client', action: 'take', lock: 'before' }, { do: 'wait', until: 3.25 }, ...holdUntil(25)],
      C2: [
        { do: 'wait', until: 12 },
        { do: 'client', action: 'take', wait: 0, as: 'late' },
      ],
    },
    faults: [
      { at: 3, do: 'powerOff', who: 'follower2' },
      {
        at: 3.25,
        do: 'system',
        action: 'dieAtEffect',
        who: 'follower1',
        what: 'written',
        nth: 1,
        how: 'kill',
        for: 0.05,
      },
      { at: 3.342, do: 'powerOff', who: 'follower1' },
      { at: 3.342, do: 'isolate', who: 'leader', for: 14 },
      { at: 3.8, do: 'start', who: 'N1' },
      { at: 3.8, do: 'start', who: 'N2' },
      { at: 3.8, do: 'start', who: 'N3' },
    ],
    until: 30,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD, C2: { late: { outcome: 'busy' } } }, order: { L: ['C1'] } },
  },
  {
    id: 'D16n',
    title:
      'A snapshot of the leader has its name, the member is killed before the folder is synced, starts, and loses power',
    reference: 'a name that a killed process gave can be read, and is not on the disk',
    text: 'It has acknowledged what follows the snapshot by then: without the name its log would begin behind nothing.',
    system: cluster({ disk: { ...HARSH, journal: false }, settings: SMALL }),
    clients: { C1: large(400), C2: busy(400) },
    faults: [0.15, 0.2, 0.25, 0.3].flatMap((powerAfter, i) => {
      const [away, back, who] = [2 + 8 * i, 7 + 8 * i, 'N3']
      const dies = { action: 'dieAtEffect', what: 'syncFolder', nth: 1, how: 'kill', for: 0.05, powerAfter } as const
      return [
        { at: away, do: 'powerOff', who },
        { at: back, do: 'start', who },
        { at: back + 0.05, do: 'system', who, ...dies },
      ] as const
    }),
    until: 80,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 400 } }, C2: { loop: { done: 400 } } },
      running: 3,
      refused: 0,
      lag: { atMost: 5 },
    },
  },
  {
    id: 'D16f',
    title: 'A sync fails, what was written can be read all the same, and the member loses power after its new start',
    reference: 'https://www.usenix.org/conference/atc20/presentation/rebello',
    text: 'The system may take a page for clean that it could not write: the last record is written again, not only synced.',
    system: cluster({ disk: TORN }),
    clients: { C1: large(250), C2: busy(250) },
    faults: Array.from({ length: 8 }, (_, i) => {
      const [at, who] = [2 + 2 * i, `N${(i % 3) + 1}`]
      return [
        trouble(at, 'failSync', who),
        { at: at + 0.5, do: 'start', who },
        { at: at + 0.7, do: 'powerOff', who },
        { at: at + 1, do: 'start', who },
      ] as const
    }).flat(),
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 250 } }, C2: { loop: { done: 250 } } },
      running: 3,
      refused: 0,
      failed: { atLeast: 5 },
    },
  },
  {
    id: 'D20',
    title: 'A member is started on an older copy of its disk: the others remember what it acknowledged',
    reference: 'outside the fault model of Raft: a member forgets votes and acknowledgements',
    text: 'N2 forgets what it has acknowledged. N1 is down, and N3 remembers: N2 stops, its vote is not counted, and it does not start on that disk again. With N1 the service continues, and C1 still has its lock.',
    system: cluster(),
    clients: {
      C1: holdUntil(40, { lock: 'kept' }),
      C2: busy(100, 1),
      C3: [
        { do: 'wait', until: 20 },
        { do: 'client', action: 'take', lock: 'kept', wait: 0, as: 'other' },
      ],
    },
    faults: [
      { at: 1, do: 'system', action: 'transfer', to: 'N1' },
      { at: 3, do: 'system', action: 'copyDisk', who: 'N2' },
      { at: 9, do: 'system', action: 'down', who: 'N1', for: 3 },
      { at: 9.1, do: 'system', action: 'setBack', who: 'N2', for: 0.5 },
      { at: 20, do: 'start', who: 'N2' },
      ...replaced(25, 'N2'),
    ],
    until: 45,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: { loop: { done: 100 } }, C3: { other: { outcome: 'busy' } } },
      failures: { N1: 0, N2: 1, N3: 0 },
      everRefused: { N1: 0, N2: 1, N3: 0 },
      running: 3,
      lag: { atMost: 5 },
    },
  },
  {
    id: 'D20f',
    title: 'A member is started on an older copy of its disk, and no running member remembers',
    reference: 'outside the fault model of Raft: a member forgets votes and acknowledgements',
    text: 'N3 is down while N1 and N2 commit a grant that N2 forgets; then N1 is down. N2 and N3 cannot know, and give the lock to another client: guarantees are violated, as they must be. When N1 returns it stops and reports the contradiction; N2 and N3 continue.',
    system: cluster(),
    clients: {
      C1: [
        { do: 'wait', until: 6 },
        { do: 'client', action: 'take', lock: 'forgotten' },
      ],
      C2: [
        { do: 'wait', until: 16 },
        { do: 'client', action: 'take', lock: 'forgotten', wait: '5s', as: 'again' },
        ...busy(20),
      ],
      C3: busy(30, 30),
    },
    faults: [
      { at: 1, do: 'system', action: 'transfer', to: 'N1' },
      { at: 3, do: 'system', action: 'copyDisk', who: 'N2' },
      { at: 4, do: 'system', action: 'down', who: 'N3', for: 7 },
      { at: 10, do: 'system', action: 'down', who: 'N1', for: 15 },
      { at: 10.5, do: 'system', action: 'setBack', who: 'N2', for: 0.5 },
      { at: 35, do: 'start', who: 'N1' },
    ],
    until: 45,
    expect: {
      violations: ['invariant'],
      facts: { C2: { again: { outcome: 'granted' } }, C3: { loop: { done: 30 } } },
      failures: { N1: 1, N2: 0, N3: 0 },
      members: { N1: 'refused' },
      refusals: { N1: { contains: 'a majority has gone on without entries that are committed here' } },
      running: 2,
    },
  },
]
