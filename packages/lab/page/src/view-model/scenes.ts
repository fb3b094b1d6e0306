import { type Scenario, scenarioOf, type Step } from '@leasehold/lab/scenarios/index'

/** Something to look at: a scenario that plays by itself, or a world for playing. */
export interface Scene {
  readonly id: string
  /** On its button. */
  readonly name: string
  readonly scenario: Scenario
  /** What to look out for. */
  readonly hint: string
  /** The scenario is only a world: it has no end and expects nothing, and clients work by themselves. */
  readonly free?: boolean
  /** A scene that belongs beside this one. */
  readonly beside?: string
}

const ARTICLE = 'https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html'

/** acquire → read both → compute → write both → release. */
export function bothUnit(work: number, wait = 600_000): Step[] {
  return [
    { do: 'acquire', wait },
    { do: 'read', resource: 'G' },
    { do: 'read', resource: 'U' },
    { do: 'work', for: work },
    { do: 'write', resources: ['G', 'U'] },
    { do: 'release' },
  ]
}

const BOTH = { G: { kind: 'G*' }, U: { kind: 'U' } } as const

function free(members: number): Scenario {
  return {
    id: `free-${members}`,
    title: `A service of ${members} members, three clients, two resources`,
    reference: ARTICLE,
    text: 'Each client takes the lock L, reads G and U, computes, writes both and releases L, over and over. G looks at tokens, U does not. Now break something.',
    system: { kind: 'leasehold', members },
    resources: BOTH,
    clients: { C1: [], C2: [], C3: [] },
    until: 1_000,
    expect: { violations: [] },
  }
}

/** The clock jump that breaks Redlock (R1), against the production service. */
const CLOCK: Scenario = {
  id: 'R1-leasehold',
  title: 'The same clock jump, with Leasehold',
  reference: ARTICLE,
  text: 'C1 holds the lock. The wall clock of the leader jumps by 15 s, as in R1. Leases are counted on a monotonic clock, and time is part of the replicated log: nothing happens, and C2 waits its turn.',
  system: { kind: 'leasehold' },
  resources: BOTH,
  clients: { C1: bothUnit(6), C2: [{ do: 'wait', until: 2 }, ...bothUnit(1)] },
  faults: [{ at: 1, who: 'leader', do: 'stepClock', clock: 'wall', by: 15 }],
  until: 12,
  expect: { violations: [], units: { C1: 'done', C2: 'done' }, values: { G: 2, U: 2 } },
}

const LEADER: Scenario = {
  id: 'S1-unit',
  title: 'The leader dies, the hold lives on',
  reference: 'sessions and holds are in the replicated log (S1)',
  text: 'C1 is at work when the leader is killed. Another member is elected; the session, its hold and its token are in the log of every member. C1 renews there and writes with the same token.',
  system: { kind: 'leasehold' },
  resources: BOTH,
  clients: { C1: bothUnit(9), C2: [{ do: 'wait', until: 2 }, ...bothUnit(1)] },
  faults: [{ at: 4, who: 'leader', do: 'kill' }],
  until: 16,
  expect: { violations: [], units: { C1: 'done', C2: 'done' }, values: { G: 2, U: 2 } },
}

const HOLDER: Scenario = {
  id: 'S13-unit',
  title: 'The holder is cut off: it knows before anybody else gets the lock',
  reference: 'local deadline: send time of the last acknowledged renewal + TTL − margin (S13)',
  text: 'C1 is cut off from all members while it works. Its own clock ends its hold one margin before the service ends its session: when C2 is granted the lock, C1 has stopped already.',
  system: { kind: 'leasehold' },
  resources: BOTH,
  clients: { C1: bothUnit(14), C2: [{ do: 'wait', until: 4 }, ...bothUnit(1)] },
  faults: [{ at: 3, do: 'cut', from: 'C1', to: ['N1', 'N2', 'N3'], for: 25 }],
  until: 20,
  expect: { violations: [], units: { C1: 'lost', C2: 'done' }, values: { G: 1, U: 1 } },
}

const ISOLATED: Scenario = {
  id: 'P1-unit',
  title: 'A leader that is cut off says nothing as a leader any more',
  reference: 'a leader answers only what a quorum has confirmed (P1)',
  text: 'The leader loses sight of the other members; C1 still sees it. The others elect a new leader in a later term and serve C2. What the old one is asked it cannot confirm, so it steps down and grants nothing.',
  system: { kind: 'leasehold' },
  resources: BOTH,
  clients: {
    C1: [{ do: 'wait', until: 3 }, ...bothUnit(1)],
    C2: [{ do: 'wait', until: 5 }, ...bothUnit(1)],
  },
  faults: [{ at: 2, do: 'cut', from: 'leader', to: ['N1', 'N2', 'N3', 'C2'], for: 12 }],
  until: 20,
  expect: { violations: [], units: { C1: 'done', C2: 'done' }, values: { G: 2, U: 2 } },
}

function known(id: string): Scenario {
  const scenario = scenarioOf(id)
  if (scenario === undefined) throw new Error(`the catalog has no ${id}`)
  return scenario
}

export const SCENES: readonly Scene[] = [
  {
    id: 'free',
    name: 'Play',
    scenario: free(3),
    hint: 'Select a member, a client or a resource, click a line to cut it, or use the buttons below the picture.',
    free: true,
  },
  {
    id: 'free5',
    name: '5 members',
    scenario: free(5),
    hint: 'Two of five may fail: kill two members, then a third one.',
    free: true,
  },
  {
    id: 'A1',
    name: 'pause',
    scenario: known('A1'),
    hint: 'Second 1: C1 is paused between its check and its write. Second 10: its lease passes on. Second 16: it wakes up.',
    beside: 'A1g',
  },
  {
    id: 'A1g',
    name: 'pause, guarded',
    scenario: known('A1g'),
    hint: 'The same pause. Look at the mark of G when C2 writes, and at the token that C1 comes with.',
    beside: 'A1',
  },
  {
    id: 'A2',
    name: 'late packet',
    scenario: known('A2'),
    hint: 'The write of C1 hangs on its line for 90 seconds: take 10× once C2 is done.',
  },
  {
    id: 'R1',
    name: 'Redlock, clock',
    scenario: known('R1'),
    hint: 'Second 1: the clock of C jumps. Its key is gone, and so C2 finds a majority, too.',
    beside: 'R1L',
  },
  {
    id: 'R1L',
    name: 'ours, clock',
    scenario: CLOCK,
    hint: 'Second 1: the clock of the leader jumps. Watch both leases of C1 continue.',
    beside: 'R1',
  },
  {
    id: 'S1',
    name: 'leader dies',
    scenario: LEADER,
    hint: 'Second 4: the leader is killed. Watch the terms, then the lease of C1, which is renewed by another member.',
  },
  {
    id: 'S13',
    name: 'holder cut off',
    scenario: HOLDER,
    hint: 'Second 3: C1 loses all members. Its upper bar (its own belief) runs out before the lower one (the service).',
  },
  {
    id: 'P1',
    name: 'leader cut off',
    scenario: ISOLATED,
    hint: 'Second 2: the cut. For a moment there are two leaders, of different terms; only one of them can commit.',
  },
]

export function sceneOf(id: string): Scene | undefined {
  return SCENES.find((scene) => scene.id === id)
}
