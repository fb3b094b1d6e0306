import {
  type Configuration,
  type Effects,
  type Entry,
  type HardState,
  type Message,
  Raft,
  type RaftLimits,
  type SnapshotMeta,
} from '../../src/index.js'
import { Links } from './links.js'
import type { Moments } from './moments.js'
import type { Prng } from './prng.js'
import { Safety } from './safety.js'

/** A member's disk: what was written, and how much of it is synced. Writes complete in order, a crash loses the rest. */
interface Disk {
  hard: HardState
  snapshot: SnapshotMeta
  /** Digest of everything applied up to the snapshot. */
  snapshotDigest: number
  entries: Entry[]
}

interface Write {
  readonly effects: Effects
}

interface Member {
  readonly id: number
  readonly disk: Disk
  raft: Raft | undefined
  /** How often it was started. */
  life: number
  writes: Write[]
  applied: number
  digest: number
  down: number
  /** Until when it stands still: it neither hears nor does anything, and its messages wait. */
  paused: number
  /** Until when it is cut off in both directions. */
  apart: number
  /** Until when its disk completes nothing. */
  stalled: number
}

interface Parcel {
  readonly at: number
  readonly message: Message
  readonly digest: number
}

export interface Faults {
  readonly loss: number
  readonly duplicate: number
  readonly delayMax: number
  readonly crash: number
  readonly cut: number
  readonly slowDisk: number
  /** Stalls a disk for a while, as the sync of another program does. */
  readonly stall: number
  /** The same just when a later term is to be written. */
  readonly stallTerm: number
  readonly compact: number
  readonly change: number
  readonly transfer: number
  /** A member is told that the leader's process has ended. */
  readonly ended: number
  readonly moments: Moments
}

const PARCELS_MAX = 5000
const STALL_MAX = 30
const CALM_WORK = 30

export function configurationFor(ids: readonly number[]): Configuration {
  return { voters: ids, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
}

/** A group of real cores on simulated disks and links, one seed deciding everything. */
export class Group {
  readonly members = new Map<number, Member>()
  readonly safety = new Safety()
  private parcels: Parcel[] = []
  private readonly links: Links
  private now = 0
  private proposed = 0
  private nextRead = 0
  private calm = false
  /** When the network falls apart. */
  private splitAt = 0

  constructor(
    private readonly random: Prng,
    private readonly ids: readonly number[],
    /** How many of them found the group; the others may join later. */
    founders: number,
    private readonly faults: Faults,
    private readonly limits: Partial<RaftLimits>,
  ) {
    this.links = new Links(random, ids)
    const snapshot: SnapshotMeta = { index: 0, term: 0, configuration: configurationFor(ids.slice(0, founders)) }
    const nothing: SnapshotMeta = { index: 0, term: 0, configuration: configurationFor([]) }
    for (const id of ids) {
      const founder = snapshot.configuration.voters.includes(id)
      const disk: Disk = {
        hard: { term: 0, vote: 0, commit: 0 },
        snapshot: founder ? snapshot : nothing,
        snapshotDigest: 0,
        entries: [],
      }
      const member: Member = {
        id,
        disk,
        raft: undefined,
        life: 0,
        writes: [],
        applied: 0,
        digest: 0,
        down: 0,
        paused: 0,
        apart: 0,
        stalled: 0,
      }
      this.members.set(id, member)
      this.start(member)
    }
  }

  private start(member: Member): void {
    const { disk } = member
    member.life++
    member.raft = new Raft({
      id: member.id,
      snapshot: disk.snapshot,
      hardState: disk.hard,
      entries: disk.entries,
      limits: this.limits,
      random: (limit) => this.random.below(limit),
    })
    member.writes = []
    member.applied = disk.snapshot.index
    member.digest = disk.snapshotDigest
  }

  private crash(member: Member): void {
    // Any prefix of the writes under way may have reached the disk; often none, when a term is at stake.
    const none = (member.raft as Raft).term > member.disk.hard.term && this.random.chance(50)
    const survived = none ? 0 : this.random.below(member.writes.length + 1)
    for (const write of member.writes.slice(0, survived)) this.store(member, write.effects)
    member.raft = undefined
    member.writes = []
    member.down = this.now + 1 + this.random.below(this.faults.moments.downMax)
    member.paused = 0
    member.stalled = 0
  }

  /** One step of the world: a tick for some, deliveries, disk completions, faults, work. */
  step(faulty: boolean): void {
    this.now++
    const { random, faults } = this
    for (const member of this.members.values()) {
      if (member.raft === undefined) {
        if (this.now >= member.down) this.start(member)
        continue
      }
      if (faulty && random.below(10_000) < faults.crash) {
        this.crash(member)
        continue
      }
      if (faulty && this.strike(member)) continue
      if (!faulty || !random.chance(10)) member.raft.tick()
      if (faulty && random.below(10_000) < faults.stall) this.stall(member)
      if (this.now >= member.stalled && !random.chance(faulty ? faults.slowDisk : 0))
        for (let i = 0; i < (faulty ? 2 : 20); i++) this.complete(member)
    }
    if (faulty) this.cutLinks()
    if (faulty && random.below(10_000) < faults.moments.blackout)
      for (const member of this.members.values()) if (member.raft !== undefined) this.crash(member)
    this.deliver()
    if (random.chance(this.calm ? Math.min(faults.moments.work, CALM_WORK) : faults.moments.work)) this.propose()
    const reader = this.members.get(random.pick(this.ids)) as Member
    if (random.chance(faults.moments.reads) && this.now >= reader.paused) this.read(reader)
    if (faulty) this.administer()
    this.reportSnapshots()
    for (const member of this.members.values()) if (member.raft !== undefined) this.drain(member)
    const rafts = [...this.members.values()].flatMap(({ raft }) => raft ?? [])
    this.safety.check(rafts)
    for (const raft of rafts) if (raft.role === 'leader') this.checkKnowledge(raft)
  }

  /** What a leader believes that a peer has on its disk is there, as long as the peer knows of no later term. */
  private checkKnowledge(leader: Raft): void {
    for (const [id, { match }] of leader.status.progress) {
      const { disk } = this.members.get(id) as Member
      if (id === leader.id || disk.hard.term > leader.term || match <= disk.snapshot.index) continue
      const theirs = disk.entries[match - disk.snapshot.index - 1]?.term
      const ours = leader.termAt(match)
      if (theirs === undefined || (ours !== undefined && theirs !== ours))
        throw new Error(
          `leader ${leader.id} of term ${leader.term} counts ${ours}/${match} of ${id}, which has ${theirs}`,
        )
    }
  }

  /** What comes at a bad moment. Whether the member is down, or stands still, now. */
  private strike(member: Member): boolean {
    const { random, now } = this
    const { depose, writing, pause, downMax } = this.faults.moments
    if (now < member.paused) return true
    if (now === member.paused) {
      // Pending reads are asked again at once, before this member learns what has happened meanwhile.
      this.read(member)
      this.drain(member)
    }
    const raft = member.raft as Raft
    const exposed = !raft.hasCommittedInTerm ? 6 : raft.commit < raft.lastIndex ? 3 : 1
    // A leader whose term is not durable must be caught.
    const forgetful = raft.role === 'leader' && raft.term > member.disk.hard.term ? 5 : 1
    if (member.writes.length > 0 && random.below(1000) < writing * forgetful) this.crash(member)
    else if (raft.role === 'leader' && random.below(1000) < depose * exposed) this.depose(member)
    else if (random.below(10_000) < pause) member.paused = now + 1 + random.below(downMax)
    return member.raft === undefined || now < member.paused
  }

  private depose(member: Member): void {
    // One after another, as in a rolling restart: a stopped member restarts when the next one stops.
    if (this.faults.moments.rolling) {
      const back = this.now + 1
      for (const one of this.members.values()) {
        one.down = Math.min(one.down, back)
        one.paused = Math.min(one.paused, back)
        one.apart = Math.min(one.apart, back)
      }
    }
    const kind = this.random.below(3)
    const until = this.now + 1 + this.random.below(this.faults.moments.downMax)
    if (kind === 0) this.crash(member)
    else if (kind === 1) member.paused = until
    else member.apart = until
  }

  private isApart(id: number): boolean {
    return this.now < (this.members.get(id) as Member).apart
  }

  private cutLinks(): void {
    const { random, faults } = this
    if (this.now === this.splitAt) this.links.split(this.leader())
    else if (random.below(1000) < faults.cut) this.links.disturb(this.leader())
  }

  private leader(): number | undefined {
    return this.ids.find((id) => this.members.get(id)?.raft?.role === 'leader')
  }

  /** From now on links are quick and lose little, so that elections can succeed. */
  heal(): void {
    this.calm = true
    this.links.heal()
    for (const member of this.members.values()) {
      member.paused = 0
      member.apart = 0
      member.stalled = 0
      if (member.raft === undefined) this.start(member)
    }
  }

  /** From now on this member is heard, and receives nothing. */
  deafen(id: number): void {
    this.links.deafen(id)
  }

  private deliver(): void {
    const isDue = ({ at, message }: Parcel) =>
      at <= this.now && this.now >= (this.members.get(message.to) as Member).paused
    const due = this.parcels.filter(isDue)
    this.parcels = this.parcels.filter((parcel) => !isDue(parcel))
    for (const { message, digest } of due) {
      const member = this.members.get(message.to)
      if (member?.raft === undefined || !this.links.carry(message.from, message.to)) continue
      if (this.isApart(message.from) || this.isApart(message.to)) continue
      if (message.kind === 'snapshot') this.incoming.set(`${message.to}/${message.snapshot.index}`, digest)
      member.raft.step(message)
      // As the program does once it is durable: its leader may have been replaced meanwhile.
      if (message.kind === 'snapshot') member.raft.snapshotArrived(message.snapshot)
      this.drain(member)
    }
  }

  private readonly incoming = new Map<string, number>()

  private send(message: Message): void {
    const { random, faults } = this
    if (random.chance(this.calm ? Math.min(faults.loss, 5) : faults.loss) || this.parcels.length > PARCELS_MAX) return
    const member = this.members.get(message.from) as Member
    const digest = message.kind === 'snapshot' ? this.safety.digestAt(message.snapshot.index) : 0
    for (let copies = random.chance(faults.duplicate) ? 2 : 1; copies > 0; copies--) {
      this.parcels.push({
        at: this.now + 1 + this.delay(message),
        message,
        digest: digest ?? member.digest,
      })
    }
  }

  private delay({ kind }: Message): number {
    const { random, faults } = this
    const { late, lateSnapshots, lateMax } = faults.moments
    // The election timeout must be well above the round trip, or no member leads for long.
    if (this.calm) return random.chance(20) ? 1 : 0
    return random.below(random.chance(kind === 'snapshot' ? lateSnapshots : late) ? lateMax : faults.delayMax)
  }

  private drain(member: Member): void {
    const raft = member.raft as Raft
    for (let rounds = 0; raft.hasEffects && rounds < 1000; rounds++) {
      const effects = raft.takeEffects()
      for (const message of effects.messages) this.send(message)
      if (effects.persist !== undefined) this.hand(member, effects)
      else for (const message of effects.gated) this.send(message)
      if (effects.snapshotWanted) this.compact(member)
      if (effects.role === 'leader') this.safety.leads(raft, member.life)
      this.apply(member, effects.committed)
      for (const { context, index } of effects.reads) this.safety.readDone(context, index)
    }
  }

  private hand(member: Member, effects: Effects): void {
    const { random, faults } = this
    const later = (effects.hardState?.term ?? 0) > member.disk.hard.term
    if (later && !this.calm && random.chance(faults.stallTerm)) this.stall(member)
    member.writes.push({ effects })
  }

  private stall(member: Member): void {
    member.stalled = this.now + 1 + this.random.below(STALL_MAX)
  }

  private complete(member: Member): void {
    const write = member.writes.shift()
    if (write === undefined || member.raft === undefined) return
    this.store(member, write.effects)
    member.raft.persisted(write.effects.persist?.sequence as number)
    for (const message of write.effects.gated) this.send(message)
    this.drain(member)
  }

  private store({ id, disk }: Member, { persist }: Effects): void {
    if (persist === undefined) return
    const { hardState, snapshot, entries } = persist
    if (persist.mustSync || this.random.chance(50)) disk.hard = hardState
    if (snapshot !== undefined) {
      disk.snapshot = snapshot
      disk.snapshotDigest = this.incoming.get(`${id}/${snapshot.index}`) ?? 0
      disk.entries = []
      const member = this.members.get(id) as Member
      member.applied = snapshot.index
      member.digest = disk.snapshotDigest
      if (disk.hard.commit < snapshot.index) disk.hard = { ...disk.hard, commit: snapshot.index }
    }
    const first = entries[0]
    if (first !== undefined) {
      disk.entries.length = first.index - disk.snapshot.index - 1
      disk.entries.push(...entries)
    }
  }

  private apply(member: Member, entries: readonly Entry[]): void {
    const raft = member.raft as Raft
    for (const entry of entries) {
      if (entry.index !== member.applied + 1)
        throw new Error(`node ${member.id} applies ${entry.index} after ${member.applied}`)
      if (entry.kind === 'configuration') raft.applyConfiguration(entry.change)
      member.applied = entry.index
      member.digest = this.safety.applied(raft, entry, member.digest)
      raft.applied(entry.index)
    }
  }

  private propose(): void {
    const member = this.members.get(this.random.pick(this.ids)) as Member
    if (member.raft === undefined || this.now < member.paused) return
    const data = Uint8Array.of(
      ...String(++this.proposed)
        .split('')
        .map(Number),
    )
    const { raft } = member
    if (raft.role === 'leader') raft.propose([data])
    else if (this.random.chance(20)) raft.propose([data])
  }

  private read({ raft }: Member): void {
    const context = ++this.nextRead
    if (raft?.read(context)) this.safety.readAsked(context)
  }

  private administer(): void {
    const { random, faults } = this
    const member = this.members.get((random.chance(50) && this.leader()) || random.pick(this.ids)) as Member
    const { raft, disk } = member
    if (raft === undefined || this.now < member.paused) return
    // Whether it is true does not matter: the hint must never do harm.
    if (random.below(1000) < faults.ended) raft.processEnded(raft.leader)
    if (random.below(1000) < faults.compact && member.applied > disk.snapshot.index + 2) this.compact(member)
    if (raft.role !== 'leader') return
    if (random.below(1000) < faults.transfer) raft.transferLeadership(random.pick(this.ids))
    if (random.below(1000) < faults.change) this.change(raft)
  }

  private compact({ raft, disk, writes, applied: index, digest }: Member): void {
    if (raft === undefined || writes.length > 0 || index <= disk.snapshot.index) return
    disk.entries = disk.entries.slice(index - disk.snapshot.index)
    disk.snapshot = { index, term: raft.termAt(index) as number, configuration: raft.configuration }
    disk.snapshotDigest = digest
    raft.snapshotTaken(disk.snapshot)
    raft.compact(index)
  }

  /** The program says how a snapshot transfer ended, some time after it was asked for; it may be wrong about success. */
  private reportSnapshots(): void {
    for (const { raft } of this.members.values()) {
      if (raft?.role !== 'leader') continue
      for (const id of this.ids) if (this.random.chance(3)) raft.reportSnapshot(id, this.random.chance(70))
    }
  }

  private change(raft: Raft): void {
    const { random } = this
    const kinds = ['addVoter', 'addVoter', 'addLearner', 'remove'] as const
    const steps = Array.from({ length: 1 + random.below(2) }, () => ({
      kind: random.pick(kinds),
      node: random.pick(this.ids),
    }))
    const voters = new Set(raft.configuration.voters)
    for (const { kind, node } of steps)
      if (kind === 'addVoter') voters.add(node)
      else voters.delete(node)
    if (voters.size < 1) return
    raft.proposeConfiguration({ transition: 'auto', steps, context: new Uint8Array(0) })
    // Some hear of the change, and the others do not.
    if (random.chance(40)) this.splitAt = this.now + random.below(12)
  }

  /** After healing: one leader, all members caught up, new proposals applied, joint configuration left. */
  settled(): boolean {
    const leader = this.newestLeader()
    if (leader === undefined || !leader.hasCommittedInTerm) return false
    const { configuration, commit } = leader.status
    if (configuration.votersOutgoing.length > 0) return false
    return [...configuration.voters, ...configuration.learners].every(
      (id) => (this.members.get(id)?.applied ?? 0) >= commit - 5,
    )
  }

  /** The leader of the highest term among members; a removed member may have a higher term, and wins no election. */
  newestLeader(): Raft | undefined {
    const leaders = [...this.members.values()].flatMap(({ raft }) => (raft?.role === 'leader' ? raft : []))
    return leaders.sort((a, b) => b.term - a.term)[0]
  }

  summary(): string {
    return [...this.members.values()]
      .map(
        ({ id, raft, applied, disk }) =>
          `${id}: ${raft === undefined ? 'down' : `${raft.role} term ${raft.term} commit ${raft.commit} last ${raft.lastIndex}`} applied ${applied} snapshot ${disk.snapshot.index} ${JSON.stringify(raft?.configuration)}`,
      )
      .join('\n')
  }
}
