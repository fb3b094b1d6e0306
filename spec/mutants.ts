/** A change of the specification, and the invariant that no longer holds with it. `find` stands in the file once. */
export interface Mutant {
  readonly file: 'locks' | 'fencing' | 'client'
  readonly find: string
  readonly replace: string
  readonly breaks: string
  /** What was built wrong. */
  readonly why: string
}

export const MUTANTS: readonly Mutant[] = [
  {
    file: 'locks',
    find: 'hold.mode == Shared and mode == Shared',
    replace: 'hold.mode == Shared',
    breaks: 'exclusion',
    why: 'an exclusive waiter joins shared holds',
  },
  {
    file: 'locks',
    find: "counter' = (now + 1) * FLOOR_RATE",
    replace: "counter' = 0",
    breaks: 'tokensGrow',
    why: 'a service that lost its state starts at 1 again',
  },
  {
    file: 'locks',
    find: "epoch' = epoch + 1",
    replace: "epoch' = epoch",
    breaks: 'tokensGrow',
    why: 'a backup is restored under its old epoch',
  },
  {
    file: 'locks',
    find: 'filter(s => sessions.get(s) <= time)',
    replace: 'filter(s => sessions.get(s) <= time + 1)',
    breaks: 'noSessionEndsEarly',
    why: 'sessions expire one tick early',
  },
  {
    file: 'locks',
    find: 'queue.select(w => not(due.contains(w.session)))',
    replace: 'queue',
    breaks: 'grantsAreForLiveSessions',
    why: 'the waiters of an expired session stay in the queue',
  },
  {
    file: 'locks',
    find: 'if (free and not(wanted))',
    replace: 'if (free)',
    breaks: 'firstComeFirstServed',
    why: 'a small request overtakes one that waits for two locks',
  },
  {
    file: 'locks',
    find: 'acc.queue.select(w => w.names.contains(n)).length() > 0)',
    replace: 'acc.queue.length() > 0)',
    breaks: 'noNeedlessWait',
    why: 'one queue for all names',
  },
  {
    file: 'locks',
    find: 'delay, time, epoch, live.keys())',
    replace: 'delays, time, epoch, live.keys())',
    breaks: 'delaysBlock',
    why: 'the queue is served before the delay counts',
  },
  {
    file: 'fencing',
    find: `if (mark <= token) all {
      mark' = max(mark, token),`,
    replace: `if (mark <= token) all {
      mark' = mark,`,
    breaks: 'noUpdateLost',
    why: 'open compares, and does not raise the mark',
  },
  {
    file: 'fencing',
    find: 'if (mark <= write.token) all {',
    replace: 'if (true) all {',
    breaks: 'noUpdateLost',
    why: 'the resource does not compare tokens',
  },
  {
    file: 'fencing',
    find: `mark' = max(mark, write.token)`,
    replace: `mark' = 0`,
    breaks: 'noStaleEffect',
    why: 'the mark is not stored with the write',
  },
  {
    file: 'client',
    find: 'answer.sent + TTL - MARGIN',
    replace: 'local + TTL - MARGIN',
    breaks: 'deadlineFiresFirst',
    why: 'the deadline counts from the receipt of the answer',
  },
  {
    file: 'client',
    find: 'pure val MARGIN = 40',
    replace: 'pure val MARGIN = 0',
    breaks: 'deadlineFiresFirst',
    why: 'no margin for clocks that drift',
  },
]
