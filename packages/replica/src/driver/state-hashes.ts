import type { NodeId } from '@leasehold/raft'

/** Number of indexes with hashes to keep. Older ones are not compared. */
const INDEXES_MAX = 8

/**
 * Compares the states of members. A member that differs from a majority of the voters must stop. When all voters have
 * reported and no majority agrees, every member must stop.
 */
export class StateHashes {
  readonly #reported = new Map<number, Map<NodeId, string>>()

  /** Records the hash of `node` at `index`. Returns why this member (`self`) must stop; undefined when it need not. */
  note(index: number, node: NodeId, hash: string, self: NodeId, voters: readonly NodeId[]): string | undefined {
    let hashes = this.#reported.get(index)
    if (!hashes) {
      hashes = new Map()
      this.#reported.set(index, hashes)
      for (const old of [...this.#reported.keys()].sort((a, b) => a - b).slice(0, -INDEXES_MAX))
        this.#reported.delete(old)
    }
    hashes.set(node, hash)
    const own = hashes.get(self)
    if (own === undefined) return undefined
    const spoken = voters.flatMap((voter) => hashes.get(voter) ?? [])
    const counts = new Map<string, number>()
    for (const one of spoken) counts.set(one, (counts.get(one) ?? 0) + 1)
    const most = Math.max(0, ...counts.values())
    const majority = [...counts].find(([, count]) => count * 2 > voters.length)?.[0]
    if (majority !== undefined && majority !== own) {
      return `the state at entry ${index} has hash ${own} here and ${majority} at ${most} of ${voters.length} voters`
    }
    if (majority === undefined && spoken.length === voters.length) {
      return `the states at entry ${index} differ, and no ${Math.floor(voters.length / 2) + 1} voters agree`
    }
    return undefined
  }
}
