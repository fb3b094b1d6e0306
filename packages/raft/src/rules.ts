/**
 * Rules by which other consensus cores differ from this one. Production always follows {@link STANDARD_RULES}; the tests
 * follow others to replay interaction scripts and schedules of those cores, and to reach states that the rules prevent.
 */
export interface RaftRules {
  /** Whether a member asks if it could win before it raises its term (thesis 9.6). */
  readonly preVote: boolean
  /** Whether a leader steps down without a quorum, and followers of a live leader reject votes (thesis 6.2). */
  readonly checkQuorum: boolean
  /** Whether entries are applied only once they are durable at this member, not merely on a quorum. */
  readonly applyDurableOnly: boolean
  /**
   * What a leader does that has applied its own removal or demotion. `handOver`: rejects proposals, brings a voter up to
   * date and makes it the leader; only then is it certain that others know what it had committed.
   */
  readonly afterRemoval: 'handOver' | 'stay' | 'stepDown'
  /** Whether a configuration change is checked before it is proposed. */
  readonly checkChanges: boolean
  /** Whether a follower forwards proposals to its leader. */
  readonly forwardProposals: boolean
  /** Whether a follower may forget its leader; not with lease-based reads. */
  readonly forgetLeader: boolean
}

export const STANDARD_RULES: RaftRules = {
  preVote: true,
  checkQuorum: true,
  applyDurableOnly: true,
  afterRemoval: 'handOver',
  checkChanges: true,
  forwardProposals: true,
  forgetLeader: true,
}
