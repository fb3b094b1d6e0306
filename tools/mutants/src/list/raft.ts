import { type Mutant, mutantsOf } from '../mutant.js'

/** Bugs of consensus. */
export const RAFT_MUTANTS: readonly Mutant[] = mutantsOf('raft', [
  {
    name: 'vote-before-sync',
    bug: 'A vote is sent before it is on disk',
    profile: 'liveness',
    patches: [
      ['raft-state', 'if (isGated(kind))', "if (isGated(kind) && (kind !== 'voteReply' || out.to === this.id))"],
    ],
  },
  {
    name: 'vote-not-synced',
    bug: 'Term and vote are written but not synced',
    profile: 'liveness',
    patches: [
      [
        'raft',
        '(hardState.term !== this.#lastHard.term || hardState.vote !== this.#lastHard.vote)',
        'hardState.term < 0',
      ],
    ],
  },
  {
    name: 'candidacy-before-sync',
    bug: 'A candidate requests votes before its term is on disk',
    profile: 'liveness',
    patches: [['messages', "kind === 'vote' || kind === 'voteReply'", "kind === 'voteReply'"]],
  },
  {
    name: 'acknowledged-before-sync',
    bug: 'A follower acknowledges entries before they are on disk',
    patches: [
      ['raft-state', 'if (isGated(kind))', "if (isGated(kind) && (kind !== 'appendReply' || out.to === this.id))"],
    ],
  },
  {
    name: 'leader-counts-unsynced',
    bug: 'A leader counts its own copy of an entry before it is on disk',
    profile: 'liveness',
    patches: [
      [
        'replication',
        'state.log.append(entries);',
        'state.log.append(entries);\n    state.progressOf(state.id)?.maybeUpdate(state.log.lastIndex);\n    if (state.isSingleton)\n        state.maybeCommit();',
      ],
    ],
  },
  {
    name: 'commits-old-term',
    bug: 'An entry of an earlier term is committed by counting its copies',
    profile: 'liveness',
    patches: [['raft-state', 'index <= this.log.committed || !this.log.matches(id)', 'index <= this.log.committed']],
  },
  {
    name: 'read-round-reused',
    bug: 'Rounds of reads share one number, so an old answer confirms a new read',
    profile: 'network',
    patches: [['reads', 'number: ++this.#last', 'number: (this.#last = 1)']],
  },
  {
    name: 'read-without-quorum',
    bug: 'A leader answers reads without confirming that it still leads',
    profile: 'network',
    patches: [['reads', 'isQuorum(this.#rounds[0].acks)', 'this.#rounds[0].acks.size > 0']],
  },
  {
    name: 'read-before-own-entry',
    bug: 'A new leader answers reads before an entry of its term is committed',
    profile: 'network',
    patches: [['dispatch', 'if (!state.hasCommittedInTerm)', 'if (state.log.lastIndex < 0)']],
  },
  {
    name: 'two-votes',
    bug: 'A member votes for two candidates of one term',
    scenarios: ['P7'],
    profile: 'liveness',
    patches: [
      ['election', 'const free = state.vote === request.from', 'const free = true || state.vote === request.from'],
    ],
  },
  {
    name: 'vote-erased',
    bug: 'Stepping down within a term erases the vote of that term',
    scenarios: ['S2'],
    profile: 'liveness',
    patches: [
      [
        'raft-state',
        'this.leader = 0;\n        this.electionElapsed = 0;',
        'this.vote = 0;\n        this.leader = 0;\n        this.electionElapsed = 0;',
      ],
    ],
  },
  {
    name: 'votes-counted-twice',
    bug: 'A vote that arrives twice counts twice',
    profile: 'network',
    members: 5,
    patches: [
      [
        'election',
        'if (!state.votes.has(from))\n        state.votes.set(from, granted);',
        'const open = state.votes.has(from) ? state.voterIds().find((id) => !state.votes.has(id)) : from;\n    if (open !== undefined)\n        state.votes.set(open, granted);',
      ],
    ],
  },
  {
    name: 'log-compared-by-length',
    bug: 'A vote goes to the longer log, whatever its last term',
    profile: 'liveness',
    patches: [
      ['log', 'id.term > last.term || (id.term === last.term && id.index >= last.index)', 'id.index >= last.index'],
    ],
  },
  {
    name: 'any-log-gets-votes',
    bug: 'A vote goes to a candidate whose log lacks entries',
    profile: 'liveness',
    patches: [['election', '!free || !state.log.isUpToDate({ term: request.logTerm, index: request.index })', '!free']],
  },
  {
    name: 'commit-beyond-append',
    bug: 'A follower commits a tail of its own that the append did not cover, before which any late acknowledgement makes a leader append',
    profile: 'liveness',
    // The second patch removes what hides the first: a leader whose probes are exact appends at the tail, and replaces it.
    patches: [
      ['log', 'this.commitTo(Math.min(commit, lastNew))', 'this.commitTo(Math.min(commit, this.lastIndex))'],
      [
        'replication',
        '!progress.isMetAt(reply.index)',
        "!(progress.match === reply.index && progress.state === 'probe')",
      ],
    ],
  },
  {
    name: 'heartbeat-commit-unbounded',
    bug: 'A heartbeat makes a follower commit entries that it may not have',
    profile: 'liveness',
    patches: [
      ['replication', 'Math.min(progress.match, state.log.committed)', 'state.log.committed'],
      [
        'log',
        'assert(index <= this.lastIndex, () => `commit ${index} is beyond',
        'index = Math.min(index, this.lastIndex);\n        assert(index <= this.lastIndex, () => `commit ${index} is beyond',
      ],
    ],
  },
  {
    name: 'no-pre-vote',
    bug: 'Without pre-vote and leader stickiness, a disconnected member disrupts the cluster',
    scenarios: ['P5'],
    patches: [
      ['rules', 'preVote: true,', 'preVote: false,'],
      ['election', 'state.leader !== 0 &&', 'state.leader < 0 &&'],
    ],
  },
  {
    name: 'no-quorum-check',
    bug: 'A leader without a majority keeps leading',
    profile: 'network',
    patches: [['raft', 'if (state.rules.checkQuorum)', 'if (state.term < 0)']],
  },
  {
    name: 'conflict-kept',
    bug: 'A conflicting tail is kept, and new entries are appended to it',
    profile: 'liveness',
    patches: [
      [
        'log',
        '(entry) => this.termAt(entry.index) !== entry.term',
        '(entry) => this.termAt(entry.index) === undefined',
      ],
    ],
  },
  {
    name: 'old-append-truncates',
    bug: 'A delayed append truncates entries that were acknowledged after it',
    profile: 'liveness',
    patches: [
      [
        'log',
        'const conflict = entries.findIndex(',
        'const conflict = entries.length > 0 && entries[0].index > this.committed ? 0 : entries.findIndex(',
      ],
    ],
  },
  {
    name: 'old-term-accepted',
    bug: 'Messages of an earlier term are treated like those of the present one',
    profile: 'network',
    patches: [
      [
        'dispatch',
        'if (message.term !== 0 && message.term < state.term)',
        'if (message.term !== 0 && message.term < state.term && state.term < 0)',
      ],
    ],
  },
  {
    name: 'refusal-taken-as-match',
    bug: 'The index in a rejection is taken for an acknowledgement',
    profile: 'liveness',
    patches: [['replication', 'if (reply.reject) {', 'if (reply.reject && reply.hint > reply.index) {']],
  },
  {
    name: 'progress-kept',
    bug: "A new leader uses its peers' progress of an earlier term",
    profile: 'liveness',
    scenarios: ['P22'],
    patches: [
      ['raft-state', 'const fresh = this.newProgress(old.isLearner, this.log.lastIndex + 1);', 'const fresh = old;'],
    ],
  },
  {
    name: 'stale-write-counts',
    bug: 'A late write counts as durability of entries that have replaced what it wrote',
    profile: 'storage',
    patches: [['log', 'write.last = Math.min(write.last, first.index - 1);', 'write.last = Math.max(write.last, 0);']],
  },
  {
    name: 'quorum-of-half',
    bug: 'Half of the members are taken for a majority in commits',
    profile: 'membership',
    patches: [['quorum', 'indexes[count - (Math.floor(count / 2) + 1)]', 'indexes[count - Math.ceil(count / 2)]']],
  },
  {
    name: 'elected-by-half',
    bug: 'Half of the members are taken for a majority in elections',
    profile: 'membership',
    patches: [['quorum', 'Math.floor(voters.size / 2) + 1;\n    let yes', 'Math.ceil(voters.size / 2);\n    let yes']],
  },
  {
    name: 'learner-counts',
    bug: "A learner's copy counts for the majority",
    profile: 'membership',
    patches: [
      [
        'raft-state',
        'return jointCommitted(voters, votersOutgoing, (id) => this.tracked.progress.get(id)?.match);',
        'const all = [...this.tracked.progress.values()].map((one) => one.match).sort((a, b) => b - a);\n        return all[Math.floor(voters.size / 2)] ?? jointCommitted(voters, votersOutgoing, () => 0);',
      ],
    ],
  },
  {
    name: 'two-changes-at-once',
    bug: 'A second change of the membership begins before the first one is applied',
    profile: 'membership',
    patches: [
      [
        'configuration-entries',
        'if (state.pendingConfiguration > state.log.applied) {',
        'if (state.pendingConfiguration < 0) {',
      ],
    ],
  },
  {
    name: 'change-before-own-entry',
    bug: 'A new leader changes the membership while a change of its predecessor may be pending',
    profile: 'membership',
    patches: [['raft-state', 'this.pendingConfiguration = this.log.lastIndex;', 'this.pendingConfiguration = 0;']],
  },
  {
    name: 'snapshot-cuts-tail',
    bug: 'A snapshot that the log covers truncates the entries after it',
    profile: 'membership',
    patches: [['raft-state', 'if (this.log.matches(meta)) {', 'if (meta.index < 0) {']],
  },
  {
    name: 'retirement-never-cleared',
    bug: 'A member that has lost its vote once counts as retiring even after it has the vote again',
    tests: ['raft/test/configuration-entries.test.ts', 'raft/test/arrived-snapshots.test.ts'],
    profile: 'membership',
    patches: [
      ['dispatch', 'if (message.commit >= state.retiringAt)', 'if (message.commit < 0)'],
      [
        'configuration-entries',
        'if (isVoter)\n        state.retiringAt = 0;',
        'if (isVoter)\n        state.retiringAt += 0;',
      ],
      ['raft-state', 'this.retiringAt = 0;\n        this.tracked', 'this.tracked'],
    ],
  },
])
