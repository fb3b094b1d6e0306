import type { Configuration, ConfigurationChange, ConfigurationStep, SnapshotMeta } from '../../src/index.js'
import { message, Raft } from '../../src/index.js'
import { argument, type Case } from './datadriven.js'
import { entryText, FIRST_KIND, progressText, roleName } from './describe.js'
import { type NodeOptions, ScriptNode } from './node.js'
import { isReply, type Parcel, parcelText } from './threads.js'

const ELECTION_TICKS = 3
const HEARTBEAT_TICKS = 1
/** Rounds of `stabilize`; more mean that the group never comes to rest. */
const ROUNDS_MAX = 1000

/** The group of a script: its members and the messages between them, moved only by directives. */
export class World {
  readonly nodes: ScriptNode[] = []
  private messages: Parcel[] = []
  private out: string[] = []

  run(one: Case): string[] {
    this.out = []
    const handler = HANDLERS[one.command]
    if (handler === undefined) throw new Error(`unknown directive ${one.command}`)
    handler(this, one)
    return this.out
  }

  print(text: string): void {
    if (text !== '') this.out.push(...text.split('\n'))
  }

  private indented(run: () => void): void {
    const outer = this.out
    this.out = []
    run()
    outer.push(...this.out.map((line) => `  ${line}`))
    this.out = outer
  }

  node(id: number): ScriptNode {
    const node = this.nodes[id - 1]
    if (node === undefined) throw new Error(`there is no node ${id}`)
    return node
  }

  addNodes(one: Case): void {
    const flag = (key: string) => argument(one, key)?.[0] === 'true'
    const ids = (key: string) => (argument(one, key) ?? []).filter((id) => id !== '').map(Number)
    const count = Number(one.args[0]?.key)
    const index = Number(argument(one, 'index')?.[0] ?? 0)
    const configuration: Configuration = {
      voters: ids('voters'),
      votersOutgoing: [],
      learners: ids('learners'),
      learnersNext: [],
      autoLeave: false,
    }
    const snapshot: SnapshotMeta = { index, term: index > 0 ? 1 : 0, configuration }
    for (let i = 0; i < count; i++) {
      const options: NodeOptions = {
        id: this.nodes.length + 1,
        asynchronous: flag('async-storage-writes'),
        rules: {
          preVote: flag('prevote'),
          checkQuorum: flag('checkquorum'),
          applyDurableOnly: flag('async-storage-writes'),
          afterRemoval: flag('step-down-on-removal') ? 'stepDown' : 'stay',
          checkChanges: !flag('disable-conf-change-validation'),
          forwardProposals: true,
          forgetLeader: argument(one, 'read-only')?.[0] !== 'lease-based',
        },
        limits: {
          electionTicks: ELECTION_TICKS,
          heartbeatTicks: HEARTBEAT_TICKS,
          appendBytesMax: Number.MAX_SAFE_INTEGER,
          uncommittedBytesMax: Number.MAX_SAFE_INTEGER,
          committedBytesMax: Number(argument(one, 'max-committed-size-per-ready')?.[0] ?? Number.MAX_SAFE_INTEGER),
          inflightsMax: Number(argument(one, 'inflight')?.[0] ?? 1_000_000_000),
          inflightBytesMax: 0,
        },
      }
      this.nodes.push(new ScriptNode(options, snapshot))
    }
  }

  ready(id: number): void {
    const { text, parcels } = this.node(id).ready()
    this.print(text)
    this.messages.push(...parcels)
  }

  thread(id: number, kind: 'append' | 'apply'): void {
    const { text, parcels } = this.node(id).work(kind)
    this.print(text)
    this.messages.push(...parcels)
  }

  /** Delivers (or drops) what is addressed to a node; returns how many. */
  deliver(to: number, options: { drop?: boolean; kind?: string } = {}): number {
    const take = (one: Parcel) =>
      one.to === to &&
      !(options.drop && isReply(one)) &&
      (options.kind === undefined || parcelText(one).includes(` ${options.kind} `))
    const taken = this.messages.filter(take)
    this.messages = this.messages.filter((one) => !take(one))
    for (const one of taken) {
      this.print(`${options.drop ? 'dropped: ' : ''}${parcelText(one)}`)
      if (!options.drop) this.step(one)
    }
    return taken.length
  }

  private step(one: Parcel): void {
    const node = this.node(one.to)
    if (isReply(one)) return node.threads.take(one)
    const isAnswer = one.kind.endsWith('Reply')
    if (isAnswer && !node.raft.status.progress.has(one.from)) return this.print('raft: cannot step as peer not found')
    node.raft.step(one)
  }

  stabilize(ids: readonly number[]): void {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      let busy = false
      for (const id of ids) {
        if (!this.node(id).hasReady) continue
        busy = true
        this.print(`> ${id} handling Ready`)
        this.indented(() => this.ready(id))
      }
      for (const id of ids) {
        if (!this.messages.some((one) => one.to === id)) continue
        busy = true
        this.print(`> ${id} receiving messages`)
        this.indented(() => this.deliver(id))
      }
      for (const kind of ['append', 'apply'] as const) {
        for (const id of ids) {
          const node = this.node(id)
          const work = () => (kind === 'append' ? node.threads.appendWork : node.threads.applyWork).length
          if (work() === 0) continue
          busy = true
          this.print(`> ${id} processing ${kind} thread`)
          while (work() > 0) this.indented(() => this.thread(id, kind))
        }
      }
      if (!busy) return
    }
    throw new Error(`no rest after ${ROUNDS_MAX} rounds`)
  }

  ids(one: Case): number[] {
    const given = one.args.map((arg) => Number(arg.key)).filter((id) => Number.isInteger(id) && id > 0)
    return given.length > 0 ? given : this.nodes.map((_, i) => i + 1)
  }

  forEach(one: Case, header: string, run: (id: number) => void): void {
    const ids = this.ids(one)
    for (const id of ids) {
      if (ids.length === 1) run(id)
      else {
        this.print(`> ${id} ${header}`)
        this.indented(() => run(id))
      }
    }
  }

  send(parcel: Parcel): void {
    this.messages.push(parcel)
  }

  showLog(id: number): void {
    const { stored, base } = this.node(id)
    if (stored.length === 0) this.print(`log is empty: first index=${base.index + 1}, last index=${base.index}`)
    else this.print(stored.map(entryText).join('\n'))
  }

  proposeChange(one: Case): void {
    const first = argument(one, 'v1')?.[0] === 'true'
    const transition =
      ({ implicit: 'jointImplicit', explicit: 'jointExplicit' } as const)[argument(one, 'transition')?.[0] ?? ''] ??
      'auto'
    const change: ConfigurationChange = {
      transition,
      steps: parseSteps(one.input),
      context: first ? Uint8Array.of(FIRST_KIND) : new Uint8Array(0),
    }
    const result = this.node(firstId(one)).raft.proposeConfiguration(change)
    if ('refused' in result && this.node(firstId(one)).raft.role !== 'leader') this.print('raft proposal dropped')
  }
}

export function parseSteps(text: string): ConfigurationStep[] {
  const kinds = { v: 'addVoter', l: 'addLearner', r: 'remove', u: 'update' } as const
  const words = text.split(/\s+/).filter((word) => word !== '')
  return words.map((word) => {
    const kind = kinds[word[0] as 'v']
    if (kind === undefined) throw new Error(`not a step of a change: ${word}`)
    return { kind, node: Number(word.slice(1)) }
  })
}

function firstId(one: Case): number {
  return Number(one.args[0]?.key)
}

const HANDLERS: Record<string, (world: World, one: Case) => void> = {
  'log-level': () => {},
  'add-nodes': (world, one) => world.addNodes(one),
  campaign: (world, one) => world.node(firstId(one)).raft.campaign(),
  propose: (world, one) => {
    const data = Uint8Array.from(one.args[1]?.key.replace(/^"(.*)"$/, '$1') ?? '', (c) => c.charCodeAt(0))
    const { raft } = world.node(firstId(one))
    const before = raft.leader
    if (raft.propose([data]) === undefined && (before === 0 || raft.role === 'leader'))
      world.print('raft proposal dropped')
  },
  'propose-conf-change': (world, one) => world.proposeChange(one),
  'process-ready': (world, one) => world.forEach(one, 'handling Ready', (id) => world.ready(id)),
  'process-append-thread': (world, one) =>
    world.forEach(one, 'processing append thread', (id) => world.thread(id, 'append')),
  'process-apply-thread': (world, one) =>
    world.forEach(one, 'processing apply thread', (id) => world.thread(id, 'apply')),
  'deliver-msgs': (world, one) => {
    const kind = argument(one, 'type')?.[0]
    const options = kind === undefined ? {} : { kind }
    let count = 0
    for (const arg of one.args) {
      const id = Number(arg.key)
      if (Number.isInteger(id)) count += world.deliver(id, options)
      else if (arg.key === 'drop')
        for (const dropped of arg.values) count += world.deliver(Number(dropped), { ...options, drop: true })
    }
    if (count === 0) world.print('no messages')
  },
  stabilize: (world, one) => world.stabilize(world.ids(one)),
  'tick-election': (world, one) => tick(world, one, ELECTION_TICKS),
  'tick-heartbeat': (world, one) => tick(world, one, HEARTBEAT_TICKS),
  'raft-log': (world, one) => world.showLog(firstId(one)),
  'raft-state': (world) => {
    for (const { raft } of world.nodes) {
      const voter = raft.configuration.voters.includes(raft.id) || raft.configuration.votersOutgoing.includes(raft.id)
      world.print(
        `${raft.id}: ${roleName(raft.role)} (${voter ? 'Voter' : 'Non-Voter'}) Term:${raft.term} Lead:${raft.leader}`,
      )
    }
  },
  status: (world, one) => {
    const { progress, role } = world.node(firstId(one)).raft.status
    if (role !== 'leader') return
    const ids = [...progress.keys()].sort((a, b) => a - b)
    for (const id of ids) world.print(`${id}: ${progressText(progress.get(id) as never)}`)
  },
  compact: (world, one) => {
    world.node(firstId(one)).compact(Number(one.args[1]?.key))
    world.showLog(firstId(one))
  },
  'send-snapshot': (world, one) => {
    const from = world.node(firstId(one))
    const to = Number(one.args[1]?.key)
    const snapshot = message({
      kind: 'snapshot',
      from: from.raft.id,
      to,
      term: from.raft.term,
      snapshot: from.latestSnapshot,
    })
    world.send(snapshot)
    world.print(parcelText(snapshot))
  },
  'transfer-leadership': (world, one) => {
    const from = Number(argument(one, 'from')?.[0])
    world.node(from).raft.transferLeadership(Number(argument(one, 'to')?.[0]))
  },
  'forget-leader': (world, one) => world.node(firstId(one)).raft.forgetLeader(),
  'report-unreachable': (world, one) => world.node(firstId(one)).raft.reportUnreachable(Number(one.args[1]?.key)),
  'set-randomized-election-timeout': (world, one) => {
    Raft.stateOf(world.node(firstId(one)).raft).electionTimeout = Number(argument(one, 'timeout')?.[0])
  },
}

function tick(world: World, one: Case, ticks: number): void {
  for (let i = 0; i < ticks; i++) world.node(firstId(one)).raft.tick()
}
