import { type Mutant, mutantsOf } from '../mutant.js'

/** Bugs of the member: its disk, its time, its answers. */
export const REPLICA_MUTANTS: readonly Mutant[] = mutantsOf('replica', [
  {
    name: 'no-folder-sync-log',
    bug: 'The folder is not synced when a log file gets its name',
    profile: 'storage',
    patches: [
      [
        'log/log',
        'this.disk.rename(spare.name, name);\n            this.disk.syncFolder();',
        'this.disk.rename(spare.name, name);',
      ],
      [
        'log/log',
        'disk.rename(mark.name, next.name);\n        disk.syncFolder();',
        'disk.rename(mark.name, next.name);',
      ],
    ],
  },
  {
    name: 'no-folder-sync-snapshot',
    bug: 'The folder is not synced when a snapshot gets its name, and the log is cut',
    profile: 'storage',
    patches: [
      [
        'snapshots/snapshots',
        'this.disk.rename(from, name);\n        this.disk.syncFolder();',
        'this.disk.rename(from, name);',
      ],
    ],
  },
  {
    name: 'torn-tail-is-damage',
    bug: 'A torn last record keeps the member from starting',
    profile: 'storage',
    patches: [['log/recovery', 'if (bad && !bad.torn)', 'if (bad)']],
  },
  {
    name: 'rot-taken-for-torn-tail',
    bug: 'A record that rotted is cut away like a torn tail, with the whole records behind it',
    profile: 'storage',
    patches: [
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
    bug: 'A failed sync is taken for a success',
    profile: 'storage',
    patches: [
      [
        'log/log',
        'if (failed)\n                        return this.end(writeFailed',
        'if (failed && part === undefined)\n                        return this.end(writeFailed',
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
    bug: 'The log is written, and not synced',
    profile: 'storage',
    patches: [
      [
        'log/log',
        'placed.file.write(placed.offset, [placed.bytes], true,',
        'placed.file.write(placed.offset, [placed.bytes], false,',
      ],
    ],
  },
  {
    name: 'snapshot-not-synced',
    bug: 'A snapshot is not synced before the log is cut',
    profile: 'storage',
    patches: [
      ['snapshots/snapshots', 'file.write(0, encode(snapshot), true,', 'file.write(0, encode(snapshot), false,'],
    ],
  },
  {
    name: 'sync-forgotten-in-merge',
    bug: 'Two writes become one, and the sync that the first one needed is forgotten',
    profile: 'storage',
    patches: [['driver/flusher', 'first.mustSync || second.mustSync', 'second.mustSync']],
  },
  {
    name: 'index-apart-from-state',
    bug: 'A snapshot names another entry than its state ends with',
    profile: 'storage',
    patches: [
      [
        'driver/snapshotting',
        'this.save({ index, term, meta: encodeMeta',
        'this.save({ index: Math.max(this.last + 1, index - 1), term, meta: encodeMeta',
      ],
    ],
  },
  {
    name: 'term-lost-with-old-files',
    bug: 'Term and vote go with the log file that they were written to',
    profile: 'storage',
    patches: [['log/log', 'this.tail === 0 && !part.hardState ? ', 'this.tail < 0 ? ']],
  },
  {
    name: 'cut-to-newest-snapshot',
    bug: 'The log is cut up to the newest snapshot, so that the older one is of no use when that rots',
    profile: 'storage',
    patches: [
      [
        'snapshots/snapshots',
        'return this.kept.length < KEPT ? 0 : this.kept[0].index;',
        'return this.kept.at(-1)?.index ?? 0;',
      ],
    ],
  },
  {
    name: 'stamp-from-own-clock',
    bug: "A new leader stamps entries with its own uptime, not after the log's time",
    patches: [
      [
        'driver/loop',
        'const base = this.stamps.highest(this.applier.state.now);\n        const now = platform.clock.monotonicMs();',
        'const now = platform.clock.monotonicMs();\n        const base = now;',
      ],
    ],
  },
  {
    name: 'pause-counts',
    bug: 'The time for which a leader was paused passes for its clients, whom it did not serve',
    patches: [['driver/leader-clock', 'Math.min(passed, PAUSE_TICKS_MAX * this.tickMs)', 'passed']],
  },
  {
    name: 'time-without-quorum',
    bug: 'Time passes while there is no quorum, and leases end for which no renewal could be acknowledged',
    patches: [
      [
        'driver/leader-clock',
        'Math.min(this.read(monotonicMs), Math.max(before, appliedMs + STAMP_AHEAD_MAX_MS))',
        'this.read(monotonicMs)',
      ],
    ],
  },
  {
    name: 'wall-clock-stamps',
    bug: 'Entries are stamped by the wall clock',
    patches: [
      [
        'driver/loop',
        'const clock = new LeaderClock(base, now, tickMs);',
        'const clock = new LeaderClock(base, now, 1e9);\n        const wall = platform.clock.wallMs === undefined ? () => now : () => platform.clock.wallMs();\n        clock.read = function () { this.value = Math.max(this.value, wall()); return this.value; };',
      ],
    ],
  },
  {
    name: 'read-before-applied',
    bug: 'A read runs before the entries that it must see are applied',
    profile: 'network',
    patches: [['driver/reads', 'this.confirmed[0].index <= applied', 'applied >= 0']],
  },
  {
    name: 'local-reads',
    bug: 'Reads are answered from the state of whichever member is asked',
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
    bug: 'A command that was proposed is answered before it is committed',
    patches: [
      [
        'driver/loop',
        'tenure.waiting.set(index, batch);',
        "batch.forEach(({ answer }, i) => answer(this.applier.foresee(data, index)[i] ?? refused('busy', '')));\n            tenure.waiting.set(index, batch.map((one) => ({ ...one, answer() { } })));",
      ],
      [
        'driver/applier',
        'since(from) {\n        return this.history.since(from);',
        'foresee(data, index) {\n        return this.state.constructor.restore(this.state.snapshot()).apply(decodeEntry(data), index).results;\n    }\n    since(from) {\n        return this.history.since(from);',
      ],
    ],
  },
  {
    name: 'gap-not-told',
    bug: 'A watch goes on from a place whose events are gone, without a word',
    patches: [['driver/history', 'if (isBefore(from, this.floor))', 'if (isBefore(from, { index: -1, ordinal: 0 }))']],
  },
  {
    name: 'snapshot-skips-events',
    bug: 'A watch goes on over a snapshot that was installed, without a word',
    profile: 'membership',
    patches: [['stream/hub', 'if (skipped)', 'if (skipped && index < 0)']],
  },
  {
    name: 'pushes-to-old-connection',
    bug: 'A session that comes back on a new connection goes on to be told on the old one',
    patches: [
      [
        'stream/hub',
        'this.#bySession.set(session, stream);',
        'if (before === undefined)\n            this.#bySession.set(session, stream);',
      ],
    ],
  },
])
