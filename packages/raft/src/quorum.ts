import type { Index, NodeId } from './types.js'

export type VoteResult = 'won' | 'pending' | 'lost'

/** Larger than any index: the commit index of an empty half of a configuration, which restricts nothing. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER

/** Returns the highest index that a majority of `voters` has; an unknown one counts as 0. */
export function majorityCommitted(voters: ReadonlySet<NodeId>, indexOf: (id: NodeId) => Index | undefined): Index {
  const count = voters.size
  if (count === 0) return NO_LIMIT
  const indexes: number[] = []
  // Insertion sort: there are few voters.
  for (const id of voters) {
    const index = indexOf(id) ?? 0
    let place = indexes.length
    for (; place > 0 && (indexes[place - 1] as number) > index; place--) indexes[place] = indexes[place - 1] as number
    indexes[place] = index
  }
  return indexes[count - (Math.floor(count / 2) + 1)] as number
}

/** Returns the highest index that majorities of both halves of a joint configuration have (thesis 4.3). */
export function jointCommitted(
  incoming: ReadonlySet<NodeId>,
  outgoing: ReadonlySet<NodeId>,
  indexOf: (id: NodeId) => Index | undefined,
): Index {
  return Math.min(majorityCommitted(incoming, indexOf), majorityCommitted(outgoing, indexOf))
}

/** Returns the outcome of a vote: won or lost as soon as the missing votes cannot change it. */
export function majorityVote(voters: ReadonlySet<NodeId>, voteOf: (id: NodeId) => boolean | undefined): VoteResult {
  if (voters.size === 0) return 'won'
  const needed = Math.floor(voters.size / 2) + 1
  let yes = 0
  let open = 0
  for (const id of voters) {
    const vote = voteOf(id)
    if (vote === undefined) open++
    else if (vote) yes++
  }
  if (yes >= needed) return 'won'
  return yes + open >= needed ? 'pending' : 'lost'
}

export function jointVote(
  incoming: ReadonlySet<NodeId>,
  outgoing: ReadonlySet<NodeId>,
  voteOf: (id: NodeId) => boolean | undefined,
): VoteResult {
  const one = majorityVote(incoming, voteOf)
  const other = majorityVote(outgoing, voteOf)
  if (one === other) return one
  return one === 'lost' || other === 'lost' ? 'lost' : 'pending'
}
