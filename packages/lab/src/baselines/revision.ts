import {
  type Command,
  type HoldId,
  type Index,
  tokenOf,
  LockState,
  type Millis,
  type Result,
  type SessionId,
} from '@leasehold/core'
import type { HeldBy, LockClient, LockSystem } from '../scenarios/system.js'
import { type Process, RpcClient, serveRpc, type World } from '../world/index.js'
import { guardableOf } from './tokens.js'

/** `{ "kind": "revision", "restore": "plain" | "epoch" }`; times are seconds. */
export interface RevisionSpec {
  /** What a restore does: just takes the state of the backup (default), or raises the epoch as well. */
  readonly restore?: 'plain' | 'epoch'
  readonly ttl?: number
}

type Question =
  | { readonly do: 'acquire'; readonly lock: string; readonly client: string }
  | { readonly do: 'release'; readonly hold: number; readonly client: string }

type Answer = { readonly granted: true; readonly hold: number; readonly token: bigint } | { readonly granted: false }

const PORT = 'revision'
const MS = 1000
const SECOND = 1_000_000
const TICK_US = 100_000
const ANSWER_WAIT_US = 5 * SECOND
const NO_SECRET = '00'.repeat(16)
/** Clients ask again this often: each attempt costs one revision. */
const RETRY_US = 200_000

/**
 * A store whose tokens are revisions (of etcd, for example), restored from a snapshot. The lock state is the production
 * one; the two ways of restoring differ in one call. Actions: `backup`, `restore`.
 */
export function revision(world: World, spec: RevisionSpec): LockSystem {
  const server = new Server(world.machine('S').spawn({}), spec)
  return {
    members: ['S'],
    overlapViolates: false,
    client: (process) => new RevisionClient(process, spec),
    actions: { backup: () => server.backup(), restore: () => server.restore() },
  }
}

class Server {
  readonly #process: Process
  readonly #spec: RevisionSpec
  readonly #sessions = new Map<string, { readonly id: SessionId; request: number }>()
  #state = LockState.create({ epoch: 1 })
  #index = 0
  #nonce = 0
  #backup: Uint8Array | undefined

  constructor(process: Process, spec: RevisionSpec) {
    this.#process = process
    this.#spec = spec
    serveRpc<Question, Answer>(process, PORT, (question, reply) => {
      const answer = this.#answer(question)
      const label = answer.granted ? { text: 'granted', token: String(answer.token) } : undefined
      reply(answer, label)
    })
    this.#tick()
  }

  backup(): void {
    this.#backup = this.#state.snapshot()
    this.#note('a backup is taken')
  }

  restore(): void {
    if (this.#backup === undefined) throw new Error('restore comes before any backup')
    const restored = LockState.restore(this.#backup)
    this.#state = this.#spec.restore === 'epoch' ? restored.withEpoch(restored.epoch + 1).state : restored
    this.#sessions.clear()
    this.#note(
      this.#spec.restore === 'epoch'
        ? 'is restored from the backup, under the next epoch'
        : 'is restored from the backup',
    )
  }

  #answer(question: Question): Answer {
    const session = this.#sessionOf(question.client)
    const number = session.request++
    const numbered = { session: session.id, request: number, ack: { lowest: number, also: [] } }
    if (question.do === 'release') {
      this.#apply({ kind: 'release', hold: question.hold as HoldId, ...numbered })
      return { granted: false }
    }
    const result = this.#apply({
      kind: 'acquire',
      ...numbered,
      locks: [{ name: question.lock, mode: 'exclusive' }],
      waitMs: 0,
      lockDelayMs: 0 as Millis,
      persistent: false,
      portable: false,
      data: new Uint8Array(0),
    })
    if (result.kind !== 'granted') return { granted: false }
    const [lock] = result.grant.locks
    return { granted: true, hold: result.grant.hold, token: tokenOf(this.#state.epoch, lock?.token as never) }
  }

  #sessionOf(client: string): { readonly id: SessionId; request: number } {
    const known = this.#sessions.get(client)
    if (known !== undefined) return known
    const ttlMs = ((this.#spec.ttl ?? 10) * MS) as Millis
    const nonce = (++this.#nonce).toString(16).padStart(32, '0')
    const result = this.#apply({ kind: 'openSession', nonce, secret: NO_SECRET, ttlMs, client, local: false })
    if (result.kind !== 'opened') throw new Error(`no session for ${client}: ${result.kind}`)
    const session = { id: result.session, request: 1 }
    this.#sessions.set(client, session)
    return session
  }

  #apply(command: Command): Result {
    return this.#entry([command])[0] as Result
  }

  #entry(commands: readonly Command[]): readonly Result[] {
    const at = Math.floor(this.#process.machine.clockUs('monotonic') / MS) as Millis
    this.#index = Math.max(this.#index, this.#state.index) + 1
    return this.#state.apply({ at, commands }, this.#index as Index).results
  }

  #tick(): void {
    this.#process.after(TICK_US, () => {
      if (this.#state.hasDeadlines) this.#entry([])
      this.#tick()
    })
  }

  #note(text: string): void {
    this.#process.world.timeline.add({ kind: 'fault', who: this.#process.name, text })
  }
}

class RevisionClient implements LockClient {
  readonly #process: Process
  readonly #spec: RevisionSpec
  readonly #rpc: RpcClient

  constructor(process: Process, spec: RevisionSpec) {
    this.#process = process
    this.#spec = spec
    this.#rpc = RpcClient.of(process)
  }

  async acquire(lock: string, options: Readonly<Record<string, unknown>>): Promise<HeldBy | undefined> {
    const endUs = this.#nowUs() + Number(options.wait ?? 0) * SECOND
    for (;;) {
      const sentUs = this.#nowUs()
      const answer = await this.#ask({ do: 'acquire', lock, client: this.#process.name }, `acquire ${lock}`)
      if (answer?.granted === true) return this.#held(lock, answer, sentUs)
      if (this.#nowUs() >= endUs) return undefined
      await this.#process.sleep(RETRY_US)
    }
  }

  #held(lock: string, { hold, token }: Answer & { granted: true }, sentUs: number): HeldBy {
    const validUntilUs = sentUs + (this.#spec.ttl ?? 10) * SECOND
    return {
      token,
      guardable: guardableOf(lock, token),
      isValid: () => this.#nowUs() < validUntilUs,
      release: async () => void (await this.#ask({ do: 'release', hold, client: this.#process.name }, 'release')),
    }
  }

  #ask(question: Question, text: string): Promise<Answer | undefined> {
    return this.#rpc.ask<Answer>({ machine: 'S', port: PORT }, question, ANSWER_WAIT_US, { text })
  }

  #nowUs(): number {
    return this.#process.machine.clockUs('monotonic')
  }
}
