import { floorAt, holdOf, LEVEL_MAX, type LockState, type Token, tokenOf } from '@leasehold/core'
import { type Identity, mintCluster, mintNode } from '../../storage/identity.js'
import { encodeMeta } from '../../cluster-meta.js'
import type { Random } from '../../platform.js'
import type { Snapshot } from '../../snapshots/snapshot-store.js'

/** A persistent hold that was moved into a new epoch. */
export interface MovedHold {
  /** The hold's id before and after. */
  readonly from: Token
  readonly to: Token
  readonly names: readonly string[]
  /** The client's description of itself. */
  readonly client: string
}

/** A service with a single member in a new epoch, to be written into an empty folder. */
export interface Raised {
  readonly identity: Identity
  readonly snapshot: Snapshot
  readonly holds: readonly MovedHold[]
}

/**
 * Creates a new service with a single member from a state: new cluster, new node number, higher epoch. The change is a
 * separate entry in a separate term, so that the new service reuses no index of the old one.
 */
export function raise(
  old: LockState,
  options: { readonly epoch: number; readonly term: number; readonly name: string },
  random: Random,
): Raised {
  const { epoch, name } = options
  const floor = floorAt(Date.now())
  const { state, moved } = old.withEpoch(epoch, { floor, level: LEVEL_MAX })
  state.apply({ at: state.now, commands: [] }, (old.index + 1) as typeof old.index)
  const node = mintNode(random)
  const cluster = mintCluster(random)
  const configuration = { voters: [node], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = encodeMeta({ cluster, configuration, members: [{ node, name, peer: '', url: '' }] })
  const holds = moved.map(({ from, to }) => {
    const view = holdOf(state, to)
    const names = view?.locks.map((lock) => lock.name) ?? []
    return { from: tokenOf(old.epoch, from), to: tokenOf(epoch, to), names, client: view?.client ?? '' }
  })
  return {
    identity: { node, name, cluster, epoch },
    snapshot: { index: state.index, term: options.term + 1, meta, state: state.snapshot() },
    holds,
  }
}
