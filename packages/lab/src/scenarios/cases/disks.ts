import type { Scenario } from '../format.js'
import { cluster, ETCD, holdUntil, KEPT_HOLD, NO_VIOLATIONS } from './parts.js'

const busy = (count: number, from = 0) =>
  [
    { do: 'wait', until: from },
    { do: 'client', action: 'loop', lock: 'busy', count, hold: 0.005 },
  ] as const
/** Records of many sectors: of each, a crash may leave any part, and log files come to their end. */
const large = (count: number, from = 0) =>
  [
    { do: 'wait', until: from },
    { do: 'client', action: 'loop', lock: 'large', count, hold: 0.005, data: 4000 },
  ] as const
const trouble = (at: number, what: string, who: string, more: Record<string, unknown> = {}) =>
  ({ at, do: 'system', action: 'disk', trouble: what, who, ...more }) as const
/** Whatever was not synced is lost. */
const HARSH = { loss: 1000, kept: 0 }
const TORN = { loss: 500, kept: 500 }
const SMALL = { snapshotBytes: 4096 }
/** A member is removed and added again with an empty disk, as its error says. */
const replaced = (from: number, who: string) =>
  [
    { at: from, do: 'system', action: 'replaceDisk', who },
    { at: from + 1, do: 'system', action: 'remove', who },
    { at: from + 2, do: 'system', action: 'add', who },
    { at: from + 6, do: 'system', action: 'promote', who },
  ] as const

export const DISK_CASES: readonly Scenario[] = [
  {
    id: 'D1',
    title: 'All members lose power right after a grant was acknowledged',
    reference: 'nothing is acknowledged before it is on the disks of a majority',
    system: cluster({ disk: HARSH }),
    clients: {
      C1: holdUntil(15),
      C2: [
        { do: 'wait', until: 3 },
        { do: 'client', action: 'take', wait: 0, as: 'early' },
      ],
    },
    // The answer is on its way when the power goes.
    faults: [{ at: 0.0842, do: 'system', action: 'blackout', for: 1 }],
    until: 20,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: { early: { outcome: 'busy' } } },
      order: { L: ['C1'] },
      running: 3,
    },
  },
  {
    id: 'D2',
    title: 'The last record is torn, again and again',
    reference: `${ETCD}/5230`,
    system: cluster({ disk: TORN }),
    clients: { C1: busy(150), C2: busy(150) },
    faults: [1, 3, 5, 7, 9, 11].map(
      (at, i) =>
        ({
          at,
          do: 'system',
          action: 'dieAtEffect',
          who: i % 2 ? 'follower1' : 'leader',
          nth: 2 + 3 * i,
          for: 1,
        }) as const,
    ),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 150 } } }, running: 3, refused: 0 },
  },
  {
    id: 'D2b',
    title: 'Records of many sectors are torn: of each, any part has reached the disk',
    reference: `${ETCD}/5230; a disk keeps no order among the sectors of one write`,
    system: cluster({ disk: TORN }),
    clients: { C1: large(150), C2: large(150) },
    faults: Array.from(
      { length: 9 },
      (_, i) =>
        ({
          at: 1 + i,
          do: 'system',
          action: 'dieAtEffect',
          who: i % 2 ? 'follower1' : 'leader',
          what: 'written',
          nth: 1 + (i % 3),
          for: 0.5,
        }) as const,
    ),
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 150 } }, C2: { loop: { done: 150 } } },
      running: 3,
      refused: 0,
      failed: 0,
      lag: { atMost: 5 },
    },
  },
  {
    id: 'D3',
    title: 'A bit changes in the middle of the log of one member',
    reference: 'https://www.usenix.org/conference/fast18/presentation/alagappan',
    text: 'The member does not start, and cuts nothing off. Replaced by an empty one it gets everything from the others.',
    system: cluster(),
    clients: { C1: large(60), C2: busy(50, 30) },
    faults: [
      { at: 8, do: 'powerOff', who: 'N2' },
      { at: 8.1, do: 'system', action: 'rot', who: 'N2', file: 'log' },
      { at: 9, do: 'start', who: 'N2' },
      ...replaced(15, 'N2'),
    ],
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 60 } }, C2: { loop: { done: 50 } } },
      running: 3,
      everRefused: { N2: 1 },
      voters: ['N1', 'N2', 'N3'],
      lag: { atMost: 5 },
    },
  },
  {
    id: 'D5',
    title: 'A bit changes in a snapshot',
    reference: 'https://github.com/nats-io/nats-server/issues/7556',
    text: 'The older snapshot and the log, or a refusal: never an empty state.',
    system: cluster({ settings: SMALL }),
    clients: { C1: busy(200), C2: holdUntil(50) },
    faults: [
      { at: 12, do: 'powerOff', who: 'N2' },
      { at: 12.1, do: 'system', action: 'rot', who: 'N2', file: 'snapshot' },
      { at: 13, do: 'start', who: 'N2' },
      ...replaced(20, 'N2'),
    ],
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 200 } }, C2: KEPT_HOLD }, running: 3, lag: { atMost: 5 } },
  },
  {
    id: 'D5n',
    title: 'A bit changes in the newest snapshot, and the log files before it are deleted: the one before stands in',
    reference: 'two snapshots are kept, and the log from the older one on',
    system: cluster({ settings: { snapshotBytes: 300_000 } }),
    clients: { C1: large(250), C2: holdUntil(50) },
    faults: [4, 6, 8].flatMap((at, i) => {
      const who = `N${(i % 3) + 1}`
      return [
        { at, do: 'powerOff', who },
        { at: at + 0.1, do: 'system', action: 'rot', who, file: 'newestSnapshot' },
        { at: at + 1, do: 'start', who },
      ] as const
    }),
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 250 } }, C2: KEPT_HOLD },
      running: 3,
      refused: 0,
      lag: { atMost: 5 },
    },
  },
  {
    id: 'D6',
    title: 'A sync fails once: the member stops, and nothing is tried again',
    reference:
      'https://issues.apache.org/jira/browse/ZOOKEEPER-4882; https://www.usenix.org/conference/atc20/presentation/rebello',
    system: cluster({ disk: TORN }),
    clients: { C1: holdUntil(20), C2: busy(200) },
    faults: [
      trouble(3, 'failSync', 'leader'),
      ...['N1', 'N2', 'N3'].map((who) => ({ at: 8, do: 'start', who }) as const),
    ],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: { loop: { done: 200 } } },
      failed: 1,
      running: 3,
      terms: { atLeast: 2 },
    },
  },
  {
    id: 'D7',
    title: "The leader's disk is full: release and renew go on, and so does everything when there is room",
    reference: 'a full disk must not hold locks for ever',
    system: cluster({ settings: SMALL }),
    clients: {
      C1: holdUntil(8),
      C2: [
        { do: 'wait', until: 5 },
        { do: 'client', action: 'take', lock: 'other', wait: '1s', as: 'early' },
        { do: 'wait', until: 18 },
        { do: 'client', action: 'take', wait: '10s' },
      ],
      C3: busy(20, 18),
    },
    faults: [
      trouble(2, 'full', 'N1', { for: 12 }),
      trouble(2, 'full', 'N2', { for: 12 }),
      trouble(2, 'full', 'N3', { for: 12 }),
    ],
    until: 40,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: { take: { outcome: 'granted' } }, C3: { loop: { done: 20 } } },
      failed: 0,
      running: 3,
    },
  },
  {
    id: 'D8',
    title: 'No room for a snapshot on one member: the service goes on',
    reference: 'the reserve is for the log',
    system: cluster({ settings: SMALL }),
    clients: { C1: busy(200) },
    faults: [trouble(2, 'full', 'follower1', { for: 15 })],
    until: 40,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 200 } } }, failed: 0, running: 3, lag: { atMost: 5 } },
  },
  {
    id: 'D9',
    title: 'New names and renames of which the folder was never told to the disk',
    reference: 'https://github.com/ClickHouse/ClickHouse/issues/111339',
    system: cluster({ disk: { ...HARSH, journal: false }, settings: SMALL }),
    clients: { C1: busy(300), C2: busy(300) },
    faults: [2, 5, 8, 11, 14].map((at) => ({ at, do: 'system', action: 'blackout', for: 0.5 }) as const),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 300 } } }, running: 3, refused: 0 },
  },
  {
    id: 'D9k',
    title: 'Of the names that the folder was not told to the disk, any part is there after a power cut',
    reference: 'https://github.com/ClickHouse/ClickHouse/issues/111339; a folder keeps no order without a journal',
    system: cluster({ disk: { loss: 500, kept: 500, journal: false }, settings: SMALL }),
    clients: { C1: large(300), C2: busy(300) },
    faults: Array.from({ length: 16 }, (_, i) => ({ at: 2 + i, do: 'system', action: 'blackout', for: 0.3 }) as const),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 300 } } }, running: 3, refused: 0 },
  },
  {
    id: 'D10',
    title: "The leader's disk becomes read-only",
    reference: 'as a failed write',
    system: cluster(),
    clients: { C1: holdUntil(20), C2: busy(150) },
    faults: [
      trouble(3, 'readOnly', 'leader', { for: 4 }),
      ...['N1', 'N2', 'N3'].map((who) => ({ at: 8, do: 'start', who }) as const),
    ],
    until: 40,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD, C2: { loop: { done: 150 } } }, failed: 1, running: 3 },
  },
  {
    id: 'D12',
    title: 'Syncs of five seconds, every now and then',
    reference: `${ETCD}/15247`,
    text: 'A write of so long is taken for a disk that hangs: each costs one change of the leader at most, and no session ends.',
    system: cluster(),
    clients: { C1: holdUntil(75) },
    faults: [5, 25, 45, 65].map((at) => trouble(at, 'slow', 'leader', { ms: 5000, for: 0.5 })),
    until: 80,
    expect: { ...NO_VIOLATIONS, facts: { C1: KEPT_HOLD }, events: { sessionEnded: 0 }, terms: { atMost: 5 } },
  },
  {
    id: 'D13',
    title: 'A disk reads a sector from another place',
    reference: 'records carry their place and a checksum',
    system: cluster(),
    clients: { C1: busy(150), C2: busy(50, 30) },
    faults: [
      { at: 6, do: 'powerOff', who: 'N2' },
      { ...trouble(6.1, 'misdirect', 'N2') },
      { at: 7, do: 'start', who: 'N2' },
      ...replaced(15, 'N2'),
    ],
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: { loop: { done: 150 } }, C2: { loop: { done: 50 } } },
      running: 3,
      lag: { atMost: 5 },
    },
  },
  {
    id: 'D14',
    title: 'A service of one loses power right after a grant',
    reference: `${ETCD}/14370`,
    system: cluster({ members: 1, disk: HARSH }),
    clients: {
      C1: holdUntil(15),
      C2: [
        { do: 'wait', until: 3 },
        { do: 'client', action: 'take', wait: 0, as: 'early' },
      ],
    },
    faults: [{ at: 0.0725, do: 'system', action: 'blackout', for: 1 }],
    until: 20,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: { early: { outcome: 'busy' } } },
      order: { L: ['C1'] },
      running: 1,
    },
  },
  {
    id: 'D15',
    title: 'Power cuts between state, log and snapshot: state and index are one',
    reference: `${ETCD}/13766`,
    system: cluster({ disk: TORN, settings: SMALL }),
    clients: { C1: busy(250), C2: busy(250) },
    faults: [2, 4, 6, 8, 10, 12, 14, 16].map(
      (at, i) =>
        ({ at, do: 'system', action: 'dieAtEffect', who: `N${(i % 3) + 1}`, nth: 5 + 4 * i, for: 0.8 }) as const,
    ),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 250 } } }, running: 3, refused: 0, lag: { atMost: 5 } },
  },
  {
    id: 'D17',
    title: 'The data folder of the leader is removed: it stops within two seconds, and another member leads',
    reference: 'files that are open outlive their folder: without a check the member would acknowledge for ever',
    text: 'What it had acknowledged is on the disks of the others. Replaced by an empty member it gets everything from them.',
    system: cluster({ watchFolders: true }),
    clients: { C1: holdUntil(50), C2: busy(300) },
    faults: [{ at: 1, do: 'system', action: 'transfer', to: 'N2' }, trouble(8, 'removed', 'N2'), ...replaced(15, 'N2')],
    until: 60,
    expect: {
      ...NO_VIOLATIONS,
      facts: { C1: KEPT_HOLD, C2: { loop: { done: 300 } } },
      running: 3,
      failed: 1,
      voters: ['N1', 'N2', 'N3'],
      lag: { atMost: 5 },
    },
  },
  {
    id: 'D15v',
    title: 'The log file in which a vote stands is deleted: the vote is still known after a power cut',
    reference: 'Raft, figure 2: term and vote are durable for as long as the member lives',
    system: cluster({ disk: HARSH, settings: SMALL }),
    clients: { C1: large(350) },
    faults: [5, 10, 15].map((at) => ({ at, do: 'system', action: 'blackout', for: 1 }) as const),
    until: 60,
    expect: { ...NO_VIOLATIONS, facts: { C1: { loop: { done: 350 } } }, running: 3, refused: 0 },
  },
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
      const dies = { action: 'dieAtEffect', what: 'syncFolder', nth: 1, how: 'kill', for: 0.05, powerAfter }
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
    text: 'N2 forgets what it has acknowledged. N1 is down, and N3 remembers: N2 stops, its vote is not counted, and it does not start on that disk again. With N1 the service goes on, and C1 still has its lock.',
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
    title: 'A member is started on an older copy of its disk, and nobody is there who remembers',
    reference: 'outside the fault model of Raft: a member forgets votes and acknowledgements',
    text: 'N3 is down while N1 and N2 commit a grant that N2 forgets; then N1 is down. N2 and N3 cannot know, and give the lock to another client: promises are broken, as they must be. When N1 returns it stops and says what stands against what; N2 and N3 go on.',
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
