import { type Mutant, mutantsOf } from '../mutant.js'

/** Bugs of the member: its disk, its time, its answers. */
export const REPLICA_MUTANTS: readonly Mutant[] = mutantsOf('replica', [
  {
    name: 'no-folder-sync-log',
    bug: 'The folder is not synced when a log file gets its name',
    scenarios: ['D9'],
    profile: 'storage',
    patches: [
      [
        'log/log',
        'this.#disk.rename(spare.name, name);\n            this.#disk.syncFolder();',
        'this.#disk.rename(spare.name, name);',
      ],
      [
        'log/log',
        'disk.rename(marker.name, next.name);\n        disk.syncFolder();',
        'disk.rename(marker.name, next.name);',
      ],
    ],
  },
  {
    name: 'no-folder-sync-snapshot',
    bug: 'The folder is not synced when a snapshot gets its name, and the log is truncated',
    scenarios: ['D9k'],
    profile: 'storage',
    patches: [
      [
        'snapshots/snapshot-store',
        'this.#disk.rename(from, name);\n        this.#disk.syncFolder();',
        'this.#disk.rename(from, name);',
      ],
    ],
  },
  {
    name: 'lost-folder-ignored',
    bug: 'A member whose data folder was deleted keeps acknowledging',
    scenarios: ['D17'],
    profile: 'storage',
    patches: [['storage/folder-watch', 'throw new FolderLostError(state);', 'return;']],
  },
  {
    name: 'torn-tail-is-damage',
    bug: 'A torn last record keeps the member from starting',
    scenarios: ['D2b'],
    profile: 'storage',
    patches: [['log/recovery', 'if (bad && !bad.torn)', 'if (at >= 0)']],
  },
  {
    name: 'rot-taken-for-torn-tail',
    bug: 'A corrupt record is truncated like a torn tail, with the intact records after it',
    scenarios: ['D3'],
    profile: 'storage',
    patches: [
      ['log/reconcile', 'if (found.commit > last) {', 'if (found.commit > last && last < 0) {'],
      [
        'log/reconcile',
        'const commit = Math.max(found.commit, snapshot.index);',
        'const commit = Math.max(Math.min(found.commit, last), snapshot.index);',
      ],
      ['log/recovery', 'if (later !== undefined)', 'if (later !== undefined && at < 0)'],
      [
        'log/recovery',
        'if (!last)\n        throw damaged(file, at, `frame',
        'if (!last && at < 0)\n        throw damaged(file, at, `frame',
      ],
      ['log/recovery', 'if (bad && !bad.torn)', 'if (bad && !bad.torn && at < 0)'],
    ],
  },
  {
    name: 'sync-error-ignored',
    bug: 'A failed sync counts as a success',
    scenarios: ['D6'],
    profile: 'storage',
    patches: [
      [
        'log/log',
        'if (failed)\n                        return this.#end(writeFailed',
        'if (failed && part === undefined)\n                        return this.#end(writeFailed',
      ],
      [
        'log/log',
        'placed.file.writeSync(placed.offset, [placed.bytes]);\n        }\n        catch (error) {',
        'placed.file.writeSync(placed.offset, [placed.bytes]);\n        }\n        catch (error) {\n            return true;',
      ],
    ],
  },
  {
    name: 'log-not-synced',
    bug: 'The log is written but not synced',
    scenarios: ['D1', 'D14'],
    profile: 'storage',
    patches: [
      ['driver/flusher', 'this.#averageMs < BLOCKING_MS', 'this.#averageMs < 0'],
      [
        'log/log',
        'placed.file.write(placed.offset, [placed.bytes], true,',
        'placed.file.write(placed.offset, [placed.bytes], false,',
      ],
    ],
  },
  {
    name: 'no-sync-at-open',
    bug: 'What is read at the start counts without a sync, although an unsynced write of a killed process can be read',
    scenarios: ['D16', 'D16n'],
    profile: 'storage',
    patches: [
      ['storage/storage', 'syncEverything(disk);', ''],
      ['log/durable', 'file.writeSync(last.offset, [last.bytes]);', ''],
    ],
  },
  {
    name: 'tail-synced-not-rewritten',
    bug: 'The last frame is synced at the start but not rewritten: after a failed sync it only seems to be on disk',
    scenarios: ['D16f'],
    profile: 'storage',
    patches: [['log/durable', 'file.writeSync(last.offset, [last.bytes]);', 'file.writeSync(0, []);']],
  },
  {
    name: 'names-not-synced-at-open',
    bug: 'The folder is not synced at the start, although a killed process can have left a rename unsynced',
    scenarios: ['D16n'],
    profile: 'storage',
    patches: [['storage/storage', 'disk.syncFolder();', '']],
  },
  {
    name: 'snapshot-not-synced',
    bug: 'A snapshot is not synced before the log is truncated',
    scenarios: ['D15'],
    profile: 'storage',
    patches: [
      ['snapshots/snapshot-store', 'file.write(0, encode(snapshot), true,', 'file.write(0, encode(snapshot), false,'],
    ],
  },
  {
    name: 'sync-forgotten-in-merge',
    bug: 'Two writes are merged without the sync that the first one needs',
    scenarios: ['D1', 'P7'],
    profile: 'storage',
    patches: [['driver/flusher', 'first.mustSync || second.mustSync', 'second.mustSync']],
  },
  {
    name: 'index-apart-from-state',
    bug: 'A snapshot names another entry than its state ends with',
    scenarios: ['D15', 'W1'],
    profile: 'storage',
    patches: [
      [
        'snapshots/snapshot-manager',
        'this.#save({ index, term, meta: encodeMeta(meta), state }',
        'this.#save({ index: Math.max(this.#lastIndex + 1, index - 1), term, meta: encodeMeta(meta), state }',
      ],
    ],
  },
  {
    name: 'term-lost-with-old-files',
    bug: 'Term and vote are deleted with the log file that contains them',
    scenarios: ['D15v'],
    profile: 'storage',
    patches: [
      ['log/log', 'this.#tail === 0 && !part.hardState ? ', 'this.#tail < 0 ? '],
      // Every write has them besides, which alone would make up for it.
      [
        'raft:raft',
        'const hardState = { term: state.term, vote: state.vote, commit: state.log.committed };\n        // Gated',
        'const told = state.term === this.#lastHard.term && state.vote === this.#lastHard.vote;\n        const hardState = told ? undefined : { term: state.term, vote: state.vote, commit: state.log.committed };\n        // Gated',
      ],
    ],
  },
  {
    name: 'cut-to-newest-snapshot',
    bug: 'The log is truncated up to the newest snapshot, so that the older one is useless if that is corrupted',
    scenarios: ['D5n'],
    profile: 'storage',
    patches: [
      [
        'snapshots/snapshot-store',
        'return this.#kept.length < KEPT ? 0 : this.#kept[0].index;',
        'return this.#kept.at(-1)?.index ?? 0;',
      ],
    ],
  },
  {
    name: 'stamp-from-own-clock',
    bug: "A new leader stamps entries with its own uptime, not after the log's time",
    scenarios: ['S2', 'S3'],
    patches: [
      [
        'leadership/entry-proposer',
        'const base = timestamps.highest(applier.state.now);\n        const now = platform.clock.monotonicMs();',
        'const now = platform.clock.monotonicMs();\n        const base = now;',
      ],
    ],
  },
  {
    name: 'time-without-leader',
    bug: 'Time without a leader counts against the leases, which could not be renewed',
    scenarios: ['S12'],
    patches: [
      [
        'leadership/entry-proposer',
        'const base = timestamps.highest(applier.state.now);',
        'const moment = platform.clock.monotonicMs();\n        const base = timestamps.highest(applier.state.now) + Math.floor(Math.max(0, moment - (this.movedAt ?? moment)));',
      ],
      [
        'leadership/entry-proposer',
        'applied({ index, term }, results) {',
        'applied({ index, term }, results) {\n        this.movedAt = this.#options.settings.platform.clock.monotonicMs();',
      ],
    ],
  },
  {
    name: 'read-before-applied',
    bug: 'A read runs before the entries that it must see are applied',
    scenarios: ['P2f'],
    profile: 'network',
    patches: [['driver/reads', 'this.#confirmed[0].index <= applied', 'applied >= 0']],
  },
  {
    name: 'local-reads',
    bug: 'Any member answers reads from its own state',
    scenarios: ['P2f'],
    profile: 'network',
    patches: [
      [
        'driver/loop',
        'if (context === undefined || this.raft.read(context))\n            return;',
        'if (context === undefined)\n            return;\n        return this.reads.confirm(context, this.applier.index);',
      ],
    ],
  },
  {
    name: 'answer-before-applied',
    bug: 'A proposed command is answered before it is committed',
    scenarios: ['D1'],
    patches: [
      [
        'leadership/entry-proposer',
        'leadership.proposed(index, at, batch);',
        "batch.forEach(({ answer }, i) => answer(applier.foresee(data, index)[i] ?? { kind: 'refused', code: 'busy', message: '' }));\n            leadership.proposed(index, at, batch.map((one) => ({ ...one, answer() { } })));",
      ],
      [
        'driver/applier',
        'since(from) {\n        return this.#history.since(from);',
        'foresee(data, index) {\n        return this.state.constructor.restore(this.state.snapshot()).apply(decodeEntry(data), index).results;\n    }\n    since(from) {\n        return this.#history.since(from);',
      ],
    ],
  },
  {
    name: 'no-acknowledged-check',
    bug: 'A member whose log ends below its remembered acknowledgements continues',
    scenarios: ['D20'],
    profile: 'storage',
    patches: [['rollback/rollback-guard', 'this.#checkOwn(from, entry);', '{}']],
  },
  {
    name: 'no-history-check',
    bug: 'A member does not compare its committed history with a different one',
    scenarios: ['D20f'],
    profile: 'storage',
    patches: [
      ['rollback/rollback-guard', 'if (entry.term > atMost) {', 'if (entry.term > atMost && entry.term < 0) {'],
    ],
  },
  {
    name: 'gap-not-told',
    bug: 'A watch continues from compacted events without reporting a gap',
    scenarios: ['W4'],
    patches: [
      ['driver/event-history', 'if (isBefore(from, this.#floor))', 'if (isBefore(from, { index: -1, ordinal: 0 }))'],
    ],
  },
  {
    name: 'snapshot-skips-events',
    bug: 'A watch continues across an installed snapshot without reporting a gap',
    scenarios: ['W6s'],
    profile: 'membership',
    patches: [['stream/stream-hub', 'if (skipped)', 'if (skipped && index < 0)']],
  },
  {
    name: 'pushes-to-old-connection',
    bug: 'Pushes of a session that has reconnected go to the old connection',
    scenarios: ['S21p'],
    patches: [
      [
        'stream/stream-hub',
        'this.#bySession.set(session, stream);',
        'if (before === undefined)\n            this.#bySession.set(session, stream);',
      ],
    ],
  },
])
