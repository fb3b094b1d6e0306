import { type Mutant, mutantsOf } from '../mutant.js'

const FLUSHER = ['replica/test/driver/flusher.test.ts']
const JOINING = ['replica/test/log/reconcile.test.ts']
const TRANSFER = ['replica/test/snapshots/snapshot-transfer.test.ts']
const APPLIER = ['replica/test/driver/applier.test.ts']

/** Bugs of what a member keeps, and of how it gets there: log, snapshots and their transfer, flusher, applier, identity. */
export const STORAGE_MUTANTS: readonly Mutant[] = mutantsOf('replica', [
  {
    name: 'merge-keeps-first-hard-state',
    bug: 'Two merged writes have the term and vote of the first, so both go back in a restart',
    tests: FLUSHER,
    profile: 'storage',
    patches: [['driver/flusher', 'second.hardState ?? first.hardState', 'first.hardState ?? second.hardState']],
  },
  {
    name: 'only-higher-term-conflicts',
    bug: 'A log whose entry at the index of the snapshot is of a lower term is taken for the same log',
    tests: JOINING,
    profile: 'storage',
    patches: [['log/reconcile', 'at.term !== snapshot.term', 'at.term > snapshot.term']],
  },
  {
    name: 'commit-before-entries',
    bug: 'The commit index is written before the entries that it covers',
    tests: JOINING,
    profile: 'storage',
    patches: [
      [
        'log/log',
        'hardState && { ...hardState, commit: Math.min(hardState.commit, this.#writtenState.commit) }',
        'hardState',
      ],
    ],
  },
  {
    name: 'later-member-list',
    bug: 'A snapshot contains the members at its completion, not those at its entry',
    tests: ['replica/test/snapshots/state-exporter.test.ts'],
    profile: 'membership',
    patches: [
      [
        'snapshots/state-exporter',
        'exported({ ...facts, state: pieces })',
        'exported({ ...facts, meta: meta(), state: pieces })',
      ],
    ],
  },
  {
    name: 'vote-of-earlier-term',
    bug: 'A member whose log is of an earlier term than its snapshot takes its old vote into the term of the snapshot',
    tests: JOINING,
    profile: 'storage',
    patches: [
      ['log/reconcile', '{ term: snapshot.term, vote: 0, commit } :', '{ ...found, term: snapshot.term, commit } :'],
    ],
  },
  {
    name: 'old-tail-stays',
    bug: 'A suffix of the log is replaced by a shorter one, and the rest returns in a restart',
    tests: JOINING,
    profile: 'storage',
    patches: [
      [
        'log/recovery',
        'this.entries.length = first.index - begin;\n        for (const entry of body.entries)\n            this.entries.push(entry);',
        'return void this.entries.splice(first.index - begin, body.entries.length, ...body.entries);\n        for (const entry of body.entries)\n            this.entries.push(entry);',
      ],
    ],
  },
  {
    name: 'newest-snapshot-goes-first',
    bug: 'After a restart the newer of two snapshots is deleted when a third one is written',
    tests: ['replica/test/snapshots/snapshot-store.test.ts'],
    profile: 'storage',
    patches: [['snapshots/snapshot-store', 'this.#kept = whole.reverse();', 'this.#kept = whole;']],
  },
  {
    name: 'reserve-never-grows',
    bug: 'The reserve for a full disk keeps the size of the first snapshot, and later ones find no room',
    tests: ['replica/test/snapshots/snapshot-store.test.ts'],
    profile: 'storage',
    patches: [
      ['snapshots/snapshot-store', '(this.#reserve && this.#reserve.size >= this.#newestBytes)', 'this.#reserve'],
    ],
  },
  {
    name: 'old-leader-restarts-transfer',
    bug: "The late start of an earlier leader's snapshot replaces the one that is arriving",
    tests: TRANSFER,
    profile: 'membership',
    patches: [
      [
        'snapshots/snapshot-transfer',
        'busy || chunk.leaderTerm < this.#leaderTerm || offset !== 0',
        'busy || offset !== 0',
      ],
    ],
  },
  {
    name: 'answer-to-another-transfer',
    bug: 'The answer to an earlier transfer of a snapshot ends the present one',
    tests: TRANSFER,
    profile: 'membership',
    patches: [['snapshots/snapshot-transfer', 'if (ack.transfer !== this.#transfer)', 'if (ack.transfer < 0)']],
  },
  {
    name: 'base-forgotten-in-merge',
    bug: 'Entries follow an installed snapshot in one write, without recording that the log begins after it',
    tests: FLUSHER,
    profile: 'storage',
    patches: [['driver/flusher', 'base: first.base, entries', 'base: undefined, entries']],
  },
  {
    name: 'unsynced-overtakes-write',
    bug: 'A write that needs no sync is reported at once, together with one that is in flight',
    tests: FLUSHER,
    profile: 'storage',
    patches: [
      ['driver/flusher', 'if (this.#isWriting || !flush)', 'if (!flush || (this.#isWriting && flush.mustSync))'],
    ],
  },
  {
    name: 'history-kept-over-snapshot',
    bug: 'Events before an installed snapshot are kept, as if none were missing in between',
    tests: APPLIER,
    profile: 'membership',
    patches: [
      [
        'driver/applier',
        'this.bytesSinceSnapshot = 0;\n        this.#history = new EventHistory(state.epoch, this.index, this.#historyOptions);',
        'this.bytesSinceSnapshot = 0;',
      ],
    ],
  },
  {
    name: 'term-of-before-snapshot',
    bug: 'A member that has installed a snapshot labels its own next one with the former term',
    tests: APPLIER,
    profile: 'membership',
    patches: [
      [
        'driver/applier',
        'this.index = index;\n        this.term = term;\n        this.bytesSinceSnapshot = 0;',
        'this.index = index;\n        this.bytesSinceSnapshot = 0;',
      ],
    ],
  },
  {
    name: 'log-of-another-member',
    bug: "The log of another member is read as the member's own",
    tests: JOINING,
    profile: 'storage',
    patches: [['storage/identity', 'String(identity.node)', 'identity.cluster']],
  },
  {
    name: 'stamps-kept-over-snapshot',
    bug: 'The times of entries that an installed snapshot has replaced count for the clock of the next leader',
    tests: ['replica/test/snapshots/stuck-snapshot.test.ts'],
    profile: 'membership',
    patches: [['driver/loop', 'this.timestamps.clear();', '']],
  },
  {
    name: 'unsaved-snapshot-counts',
    bug: 'A snapshot that found no room on the disk counts as the newest one',
    tests: ['replica/test/snapshots/snapshot-manager.test.ts'],
    profile: 'storage',
    patches: [
      [
        'snapshots/snapshot-manager',
        'if (!error)\n                    this.#lastIndex = snapshot.index;',
        'this.#lastIndex = snapshot.index;',
      ],
    ],
  },
  {
    name: 'snapshot-of-old-leader-stuck',
    bug: 'A snapshot that became durable after its leader was replaced is not installed, and later ones are rejected',
    tests: ['replica/test/snapshots/stuck-snapshot.test.ts'],
    scenarios: ['P15b'],
    profile: 'storage',
    patches: [
      ['driver/loop', 'this.raft.snapshotArrived(snapshot);', ''],
      [
        'snapshots/snapshot-manager',
        "if (this.#isCovered(received))\n            return then('known');\n        this.halt();",
        "if (received.index <= this.#lastIndex)\n            return then('failed');\n        this.halt();",
      ],
    ],
  },
])
