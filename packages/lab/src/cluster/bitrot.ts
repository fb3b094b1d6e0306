import type { SimulatedMember } from './simulated-member.js'

export type BitrotTarget = 'log' | 'snapshot' | 'newestSnapshot' | 'identity' | 'mark'

const FILES: Readonly<Record<Exclude<BitrotTarget, 'newestSnapshot'>, RegExp>> = {
  log: /^log-/,
  snapshot: /^snapshot-/,
  identity: /^identity$/,
  mark: /^mark-/,
}

/**
 * Changes one bit in a file of a member that does not run. Afterwards the member may refuse to start, except when the newest
 * of its own snapshots has rotted: the one before and the log must stand in for it.
 */
export function bitrot({ disk, appliedMax, tookIn }: SimulatedMember, what: BitrotTarget): void {
  const snapshots = [...disk.folder.names.keys()].filter((name) => FILES.snapshot.test(name)).sort()
  const [before, newest] = snapshots.slice(-2)
  const { altered } = disk
  const rotten = disk.rot(what === 'newestSnapshot' ? new RegExp(`^${snapshots.at(-1) ?? '-'}$`) : FILES[what])
  if (rotten === undefined || rotten !== newest || before === undefined) return
  // After a snapshot of the leader the log is empty: there is nothing between it and an older one.
  const isWhole = disk.folder.names.get(before)?.rotten === false
  const isSpare = isWhole && indexOf(before) >= tookIn && indexOf(newest) <= appliedMax
  if (isSpare) disk.altered = altered
}

function indexOf(snapshot: string): number {
  return Number(snapshot.split('-')[1])
}
