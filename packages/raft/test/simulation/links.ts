import type { Prng } from './prng.js'

/** Which links carry nothing: each direction of each pair by itself. */
export class Links {
  private readonly cuts = new Set<string>()
  /** The member that was isolated last. It may return without those that were isolated with it. */
  private splitOff = 0

  constructor(
    private readonly random: Prng,
    private readonly ids: readonly number[],
  ) {}

  carry(from: number, to: number): boolean {
    return !this.cuts.has(`${from}-${to}`)
  }

  heal(): void {
    this.cuts.clear()
  }

  deafen(a: number): void {
    for (const b of this.ids) this.cuts.add(`${b}-${a}`)
  }

  /** Changes the network at random. `leader`: a current leader, if there is one. */
  disturb(leader: number | undefined): void {
    const { random, ids } = this
    const kind = random.below(100)
    if (kind < 15) this.heal()
    else if (kind < 35) this.rejoin(random.chance(50) ? this.splitOff : random.pick(ids))
    else if (kind < 70) this.split(leader)
    else this.lose(random.pick(ids))
  }

  /** Isolates a leader with some others, at most half of all: of an even number of voters neither half is a majority. */
  split(leader: number | undefined): void {
    const { random, ids } = this
    this.splitOff = leader ?? random.pick(ids)
    const apart = new Set([this.splitOff])
    for (let more = random.below(ids.length >> 1); more > 0; more--) apart.add(random.pick(ids))
    this.heal()
    for (const a of ids) for (const b of ids) if (apart.has(a) !== apart.has(b)) this.cuts.add(`${a}-${b}`)
  }

  /** One member does not reach, or does not hear either, all others or some. */
  private lose(a: number): void {
    const { random } = this
    const alone = random.chance(50)
    for (const b of this.ids) {
      if (b === a || (!alone && random.chance(50))) continue
      this.cuts.add(`${a}-${b}`)
      if (random.chance(70)) this.cuts.add(`${b}-${a}`)
    }
  }

  private rejoin(a: number): void {
    for (const b of this.ids) for (const link of [`${a}-${b}`, `${b}-${a}`]) this.cuts.delete(link)
  }
}
