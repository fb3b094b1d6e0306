import { inspect } from '@leasehold/replica'
import type { Cluster } from '../cluster/cluster.js'
import type { SimulatedMember } from '../cluster/simulated-member.js'
import type { World } from '../world/world.js'

const US_PER_MS = 1000
const LOOK_MS = 50
/** A member whose disk was set back has run for less than this when it has found that out. */
const FOUND_WITHIN_MS = 3000

interface Options {
  readonly world: World
  readonly cluster: Cluster
  readonly member: SimulatedMember
  /** It was found out, or not in time. */
  readonly done: () => void
}

/**
 * A member is started on an older copy of its disk. That breaks what the service rests on, and only members that remember can
 * tell; so it is done only while all other members run, are reached, and remember more than the copy has. Then the member
 * must stop, and promises hold; the scenario D20f shows what happens where no member remembers.
 */
export class DiskRollback {
  readonly #files: ReadonlyMap<string, Uint8Array>
  readonly #node: number
  readonly #last: { readonly index: number; readonly term: number }
  #failures = 0

  readonly #options: Options

  /** Copies the disk of a member that runs. */
  constructor(options: Options) {
    this.#options = options
    const { member } = options
    const { raft, termAt } = inspect(member.replica as NonNullable<typeof member.replica>)
    this.#files = member.disk.files()
    this.#node = raft.id
    this.#last = { index: raft.last, term: termAt(raft.last) ?? 0 }
  }

  /** Whether the others can tell. */
  get isKnown(): boolean {
    const { cluster, member, world } = this.#options
    if (!member.running || member.founding?.node !== this.#node || member.isDamaged) return false
    return cluster.list.every(({ name, running, process, replica }) => {
      if (name === member.name) return true
      if (!running || !replica || process?.paused) return false
      const links = [world.network.link(name, member.name), world.network.link(member.name, name)]
      if (links.some(({ isCut, isClogged }) => isCut || isClogged)) return false
      const known = inspect(replica).acknowledged(this.#node)
      return known !== undefined && known.term >= this.#last.term && known.index > this.#last.index
    })
  }

  carryOut(): void {
    const { cluster, member } = this.#options
    this.#failures = member.failures
    cluster.setBack(member.name, this.#files)
    member.start()
    this.#look(0)
  }

  #look(runningMs: number): void {
    const { cluster, member, world, done } = this.#options
    world.after(LOOK_MS * US_PER_MS, 'set back', () => {
      if (member.failures > this.#failures || member.isDamaged) return done()
      if (runningMs < FOUND_WITHIN_MS) return this.#look(runningMs + (member.running ? LOOK_MS : 0))
      cluster.checks.violations.report(
        'L5',
        `${member.name} runs on a disk that was set back, though the others remember`,
      )
      done()
    })
  }
}
