import type { Progress } from './progress.js'
import type { Configuration, ConfigurationChange, ConfigurationStep, NodeId } from './types.js'

/** A configuration as sets, which are replaced and never altered. */
export interface Members {
  voters: ReadonlySet<NodeId>
  votersOutgoing: ReadonlySet<NodeId>
  learners: ReadonlySet<NodeId>
  learnersNext: ReadonlySet<NodeId>
  autoLeave: boolean
}

export interface Tracked {
  readonly members: Members
  readonly progress: Map<NodeId, Progress>
}

/** An invalid change, which leaves the configuration as it was. */
export class MembershipError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MembershipError'
  }
}

export const NO_NODES: ReadonlySet<NodeId> = new Set()

export function noMembers(): Members {
  return { voters: NO_NODES, votersOutgoing: NO_NODES, learners: NO_NODES, learnersNext: NO_NODES, autoLeave: false }
}

export function isJoint(members: Members): boolean {
  return members.votersOutgoing.size > 0
}

/** How a change is made: in one step, by entering a joint configuration, or by leaving one. */
export function kindOf(change: ConfigurationChange): 'simple' | 'enter' | 'leave' {
  if (change.steps.length === 0 && change.transition === 'auto') return 'leave'
  return change.transition !== 'auto' || change.steps.length > 1 ? 'enter' : 'simple'
}

/** The working copy of a change: mutable sets, and a new map of the same progress objects. */
class Draft {
  readonly voters: Set<NodeId>
  readonly votersOutgoing: Set<NodeId>
  readonly learners: Set<NodeId>
  readonly learnersNext: Set<NodeId>
  autoLeave: boolean
  readonly progress: Map<NodeId, Progress>

  readonly #track: (isLearner: boolean) => Progress

  constructor(from: Tracked, track: (isLearner: boolean) => Progress) {
    this.#track = track
    const { members } = from
    this.voters = new Set(members.voters)
    this.votersOutgoing = new Set(members.votersOutgoing)
    this.learners = new Set(members.learners)
    this.learnersNext = new Set(members.learnersNext)
    this.autoLeave = members.autoLeave
    this.progress = new Map(from.progress)
  }

  take(steps: readonly ConfigurationStep[]): void {
    for (const step of steps) {
      if (step.node === 0) continue
      if (step.kind === 'addVoter') this.#addVoter(step.node)
      else if (step.kind === 'addLearner') this.#addLearner(step.node)
      else if (step.kind === 'remove') this.#remove(step.node)
    }
    if (this.voters.size === 0) throw new MembershipError('removed all voters')
  }

  #addVoter(node: NodeId): void {
    const known = this.progress.get(node)
    if (known === undefined) return this.#start(node, false)
    this.#replace(node, known, false)
    this.learners.delete(node)
    this.learnersNext.delete(node)
    this.voters.add(node)
  }

  /** An outgoing voter becomes a learner only when the joint configuration is left. */
  #addLearner(node: NodeId): void {
    const known = this.progress.get(node)
    if (known === undefined) return this.#start(node, true)
    if (known.isLearner) return
    this.#remove(node)
    this.progress.set(node, known)
    if (this.votersOutgoing.has(node)) this.learnersNext.add(node)
    else {
      this.#replace(node, known, true)
      this.learners.add(node)
    }
  }

  #remove(node: NodeId): void {
    if (!this.progress.has(node)) return
    this.voters.delete(node)
    this.learners.delete(node)
    this.learnersNext.delete(node)
    if (!this.votersOutgoing.has(node)) this.progress.delete(node)
  }

  #start(node: NodeId, isLearner: boolean): void {
    if (isLearner) this.learners.add(node)
    else this.voters.add(node)
    const progress = this.#track(isLearner)
    // A new peer counts as active: it could not answer yet, and the leader must not lose its quorum check by that.
    progress.recentlyActive = true
    this.progress.set(node, progress)
  }

  /** Copies the progress, because the objects are shared with the configuration before the change. */
  #replace(node: NodeId, known: Progress, isLearner: boolean): void {
    if (known.isLearner === isLearner) return
    this.progress.set(node, known.withRole(isLearner))
  }

  leave(): void {
    for (const node of this.learnersNext) {
      this.learners.add(node)
      const known = this.progress.get(node)
      if (known !== undefined) this.#replace(node, known, true)
    }
    this.learnersNext.clear()
    for (const node of this.votersOutgoing) {
      if (!this.voters.has(node) && !this.learners.has(node)) this.progress.delete(node)
    }
    this.votersOutgoing.clear()
    this.autoLeave = false
  }

  done(): Tracked {
    const { voters, votersOutgoing, learners, learnersNext, autoLeave } = this
    const members: Members = { voters, votersOutgoing, learners, learnersNext, autoLeave }
    checkMembers({ members, progress: this.progress })
    return { members, progress: this.progress }
  }
}

/** Adds or removes at most one voter and any number of learners: old and new majorities intersect (thesis 4.1). */
export function simpleChange(
  from: Tracked,
  steps: readonly ConfigurationStep[],
  track: (isLearner: boolean) => Progress,
): Tracked {
  if (isJoint(from.members)) throw new MembershipError("can't apply simple config change in joint config")
  const draft = new Draft(from, track)
  draft.take(steps)
  let changed = 0
  for (const id of from.members.voters) if (!draft.voters.has(id)) changed++
  for (const id of draft.voters) if (!from.members.voters.has(id)) changed++
  if (changed > 1) throw new MembershipError('more than one voter changed without entering joint config')
  return draft.done()
}

/** Enters a joint configuration: until it is left, decisions need both majorities (thesis 4.3). */
export function enterJoint(
  from: Tracked,
  autoLeave: boolean,
  steps: readonly ConfigurationStep[],
  track: (isLearner: boolean) => Progress,
): Tracked {
  if (isJoint(from.members)) throw new MembershipError('config is already joint')
  if (from.members.voters.size === 0) throw new MembershipError("can't make a zero-voter config joint")
  const draft = new Draft(from, track)
  for (const id of draft.voters) draft.votersOutgoing.add(id)
  draft.take(steps)
  draft.autoLeave = autoLeave
  return draft.done()
}

export function leaveJoint(from: Tracked, track: (isLearner: boolean) => Progress): Tracked {
  if (!isJoint(from.members)) throw new MembershipError("can't leave a non-joint config")
  const draft = new Draft(from, track)
  draft.leave()
  return draft.done()
}

export function changeMembers(
  from: Tracked,
  change: ConfigurationChange,
  track: (isLearner: boolean) => Progress,
): Tracked {
  const kind = kindOf(change)
  if (kind === 'leave') return leaveJoint(from, track)
  if (kind === 'simple') return simpleChange(from, change.steps, track)
  return enterJoint(from, change.transition !== 'jointExplicit', change.steps, track)
}

/** Returns the members of a configuration from a snapshot or from the disk, each with new progress. */
export function restoreMembers(configuration: Configuration, track: (isLearner: boolean) => Progress): Tracked {
  const members: Members = {
    voters: new Set(configuration.voters),
    votersOutgoing: new Set(configuration.votersOutgoing),
    learners: new Set(configuration.learners),
    learnersNext: new Set(configuration.learnersNext),
    autoLeave: configuration.autoLeave,
  }
  const progress = new Map<NodeId, Progress>()
  for (const id of [...members.voters, ...members.votersOutgoing, ...members.learners]) {
    if (progress.has(id)) continue
    const one = track(members.learners.has(id))
    one.recentlyActive = true
    progress.set(id, one)
  }
  checkMembers({ members, progress })
  return { members, progress }
}

function checkMembers({ members, progress }: Tracked): void {
  const fail = (text: string): never => {
    throw new MembershipError(text)
  }
  for (const id of [...members.voters, ...members.votersOutgoing, ...members.learners, ...members.learnersNext]) {
    if (!progress.has(id)) fail(`no progress for ${id}`)
  }
  for (const id of members.learnersNext) {
    if (!members.votersOutgoing.has(id)) fail(`${id} is in LearnersNext, but not in Voters[1]`)
    if (progress.get(id)?.isLearner) fail(`${id} is in LearnersNext, but is already marked as learner`)
  }
  for (const id of members.learners) {
    if (members.votersOutgoing.has(id)) fail(`${id} is in Learners and Voters[1]`)
    if (members.voters.has(id)) fail(`${id} is in Learners and Voters[0]`)
    if (!progress.get(id)?.isLearner) fail(`${id} is in Learners, but is not marked as learner`)
  }
  if (!isJoint(members)) {
    if (members.learnersNext.size > 0) fail('cfg.LearnersNext must be nil when not joint')
    if (members.autoLeave) fail('AutoLeave must be false when not joint')
  }
}

export function configurationOf(members: Members): Configuration {
  const sorted = (ids: ReadonlySet<NodeId>) => [...ids].sort((a, b) => a - b)
  return {
    voters: sorted(members.voters),
    votersOutgoing: sorted(members.votersOutgoing),
    learners: sorted(members.learners),
    learnersNext: sorted(members.learnersNext),
    autoLeave: members.autoLeave,
  }
}
