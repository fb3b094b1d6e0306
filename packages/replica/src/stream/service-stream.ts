import {
  type Attach,
  type ClientMessage,
  type Command,
  type CommandMessage,
  type Event,
  type GetMessage,
  type Hello,
  type Index,
  LAST_ORDINAL,
  redactQuery,
  type Push,
  type QueryMessage,
  type Refused,
  type Result,
  type ServerMessage,
  type SessionId,
  sessionRule,
  STREAM_VERSION,
  type WatchMessage,
} from '@leasehold/core'
import type { Member, ReadView } from '../member.js'
import { refusal, type StreamLimits, type StreamPeer, type StreamViews } from './stream-options.js'
import { ReadThrottle } from './read-throttle.js'
import { eventsFor, narrowed, pastEvents, type Watch } from './watches.js'

type Later = Exclude<ClientMessage, Hello>

/** What a stream needs from the hub that opened it. */
export interface StreamOwner<State> {
  readonly member: Member<State>
  readonly views: StreamViews<State>
  /** Whether sessions opened here live in the service's own process. */
  readonly local: boolean
  readonly limits: StreamLimits
  readonly urls: () => readonly string[]
  /** Binds a session to the stream whose client has shown the session's secret last. */
  bound(session: SessionId, stream: ServiceStream<State>): void
  /** The stream has opened its first watch or closed its last. */
  watchingChanged(stream: ServiceStream<State>): void
  /** The stream has messages to flush. */
  dirty(stream: ServiceStream<State>): void
  closed(stream: ServiceStream<State>): void
}

/**
 * The service's side of one connection.
 *
 * - *new*: accepts only `hello`. *open*: accepts commands, reads and watches. *closed*: accepts nothing; pending answers are
 *   dropped, and its sessions live until their TTL or until they are attached elsewhere.
 *
 * Session ids are not secret: a command for a session is accepted only on the connection that opened the session or attached
 * it with its secret.
 */
export class ServiceStream<State> {
  readonly #hub: StreamOwner<State>
  readonly #peer: StreamPeer
  readonly #sessions = new Set<SessionId>()
  readonly #watches = new Map<number, Watch>()
  readonly #reads: ReadThrottle
  #out: ServerMessage[] = []
  #state: 'new' | 'open' | 'closed' = 'new'
  #openCalls = 0
  #receiving = false
  /** Set by the hub: this stream is flushed at the end of the burst. */
  marked = false

  /** Called by `StreamHub.open`. */
  constructor(hub: StreamOwner<State>, peer: StreamPeer) {
    this.#hub = hub
    this.#peer = peer
    this.#reads = new ReadThrottle(hub.limits.unsentBytes, peer.backlog && (() => peer.backlog?.() ?? 0))
  }

  get closed(): boolean {
    return this.#state === 'closed'
  }

  /** Sessions that are bound to this connection. */
  get sessions(): ReadonlySet<SessionId> {
    return this.#sessions
  }

  /** Handles the messages of one frame. */
  receive(messages: readonly ClientMessage[]): void {
    this.#receiving = true
    try {
      for (const message of messages) {
        if (this.#state === 'closed') return
        if (message.kind === 'hello') this.#hello(message)
        else if (this.#state === 'new') this.#endWith(refusal('invalid', 'the first message of a stream is hello'))
        else this.#message(message)
      }
    } finally {
      this.#receiving = false
      this.flush()
    }
  }

  /** To be called in another turn of the event loop, after the transport has sent emitted messages. */
  sent(): void {
    if (this.#state === 'open') this.#reads.resume()
  }

  /** Whether the transport must call {@link ServiceStream.sent}: reads were answered or deferred. */
  get awaitsSent(): boolean {
    return !this.#reads.idle
  }

  /** Closes the stream after its connection has ended. */
  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#out = []
    this.#reads.clear()
    this.#watches.clear()
    this.#hub.closed(this)
    this.#sessions.clear()
  }

  // --- For the hub ---

  pushed(push: Push): void {
    this.#add({ kind: 'push', push })
    if (push.ended) this.unbind(push.session)
  }

  unbind(session: SessionId): void {
    this.#sessions.delete(session)
  }

  get watching(): boolean {
    return this.#watches.size > 0
  }

  applied(index: Index, events: readonly Event[]): void {
    // Watches may be deleted during the iteration, which is safe.
    for (const watch of this.#watches.values()) {
      const message = eventsFor(watch, index, events)
      if (!message) continue
      const refused = this.#peer.watchEnds?.(watch.prefix)
      if (refused) this.#endWatch(watch, refused)
      else this.#add(narrowed(message, this.#peer.mayRead))
    }
  }

  /** Ends all watches, because entries were skipped by a snapshot. */
  gap(): void {
    for (const watch of [...this.#watches.values()])
      this.#endWatch(watch, refusal('gap', 'this member has skipped events'))
  }

  flush(): void {
    if (this.#out.length === 0 || this.#receiving) return
    const messages = this.#out
    this.#out = []
    this.#peer.emit(messages)
  }

  // --- Messages ---

  #hello(hello: Hello): void {
    const { member, urls } = this.#hub
    if (this.#state !== 'new') return this.#endWith(refusal('invalid', 'hello comes once'))
    if (hello.version !== STREAM_VERSION) {
      const text = `the stream has version ${STREAM_VERSION} here, not ${hello.version}`
      return this.#endWith(refusal('invalid', text, 'update the older side'))
    }
    const refused = this.#peer.authenticate?.(hello)
    if (refused) return this.#endWith(refused)
    const { cluster, epoch, member: name, role, leaderUrl, failure, failureHint } = member.status
    if (role === 'stopped') {
      const why = failure === undefined ? '' : `: ${failure}`
      return this.#endWith(refusal('unreachable', `this member has stopped${why}`, failureHint))
    }
    if (hello.epoch > epoch) {
      return this.#endWith(
        refusal('no-quorum', `this member is of epoch ${epoch}, older than the client's ${hello.epoch}`),
      )
    }
    this.#state = 'open'
    this.#add({
      kind: 'welcome',
      version: STREAM_VERSION,
      cluster,
      epoch,
      member: name,
      leaderUrl: role === 'leader' ? '' : leaderUrl,
      urls: urls(),
    })
  }

  #message(message: Later): void {
    const { correlation } = message
    if (message.kind === 'ping') return this.#add({ kind: 'pong', correlation })
    if (message.kind === 'unwatch') {
      this.#watches.delete(correlation)
      this.#reads.drop(correlation)
      return this.#hub.watchingChanged(this)
    }
    const refused = this.#full() ?? this.#peer.authorize?.(message)
    if (refused) return this.#refuse(correlation, refused)
    switch (message.kind) {
      case 'attach':
        return this.#attach(message)
      case 'command':
        return this.#command(message)
      case 'query':
      case 'get':
        return this.#read(message)
      case 'watch':
        // Without a cursor, the watch starts now and has nothing to send.
        if (message.from === undefined) return this.#watch(message)
        return this.#reads.answerInTurn(correlation, () => this.#watch(message))
    }
  }

  #attach({ correlation, session, secret }: Attach): void {
    this.#call((done) => {
      this.#hub.member.read((view) => {
        done()
        if (this.#state === 'closed') return
        if ('refused' in view) return this.#refuse(correlation, view.refused)
        const known = this.#hub.views.sessionSecret(view.state, session)
        if (known === undefined) {
          return this.#refuse(correlation, refusal('session-ended', `session ${session} does not exist`))
        }
        if (!sameSecret(known, secret)) {
          return this.#refuse(correlation, refusal('forbidden', 'this is not the secret of the session'))
        }
        const full = this.#bind(session)
        if (full) this.#refuse(correlation, full)
        else this.#add({ kind: 'attached', correlation })
      })
    })
  }

  #command({ correlation, command }: CommandMessage): void {
    const refused = this.#misuse(command)
    if (refused) return this.#refuse(correlation, refused)
    const submitted = command.kind === 'openSession' ? { ...command, local: this.#hub.local } : command
    this.#call((done) => {
      this.#hub.member.submit(submitted, (result) => {
        done()
        if (this.#state !== 'closed') this.#result(correlation, result)
      })
    })
  }

  #result(correlation: number, result: Result): void {
    if (result.kind === 'refused' && result.code === 'no-quorum') return this.#refuse(correlation, result)
    const full = result.kind === 'opened' ? this.#bind(result.session) : undefined
    if (full) return this.#refuse(correlation, full)
    this.#add({ kind: 'result', correlation, result })
  }

  #read(message: QueryMessage | GetMessage): void {
    const answer = (view: ReadView<State>): ServerMessage => {
      const { correlation } = message
      const { views } = this.#hub
      if (message.kind === 'get') {
        return { kind: 'getAnswer', correlation, register: views.register(view.state, message.key) }
      }
      const result = views.query(view.state, message.query, view.index)
      const { mayRead } = this.#peer
      return { kind: 'queryAnswer', correlation, answer: mayRead ? redactQuery(result, mayRead) : result }
    }
    const { correlation, stale } = message
    const inTurn = (): void => {
      this.#reads.answerInTurn(correlation, () => {
        this.#addRead(this.#guarded(correlation, () => answer(this.#hub.member.stale())))
      })
    }
    if (stale) return inTurn()
    this.#call((done) => {
      this.#hub.member.read((view) => {
        done()
        if (this.#state === 'closed') return
        if ('refused' in view) return this.#refuse(correlation, view.refused)
        // The current state is the confirmed one or a later one.
        inTurn()
      })
    })
  }

  /** Turns the error of an invalid query into a refusal. The stream continues. */
  #guarded(correlation: number, answer: () => ServerMessage): ServerMessage {
    try {
      return answer()
    } catch (error) {
      const { code, message, hint } = error as { code?: Refused['code']; message: string; hint?: string }
      if (code === undefined) throw error
      return { kind: 'error', correlation, refused: refusal(code, message, hint), leaderUrl: '' }
    }
  }

  #watch({ correlation, prefix, from }: WatchMessage): void {
    const { member, limits } = this.#hub
    if (this.#watches.size >= limits.watches) {
      return this.#refuse(correlation, refusal('limit', `${limits.watches} watches of one stream are open`))
    }
    const { epoch } = member.status
    const { index } = member.stale()
    // Without a cursor: after everything that is applied.
    const watch: Watch = { correlation, prefix, from: from ?? { epoch, index, ordinal: LAST_ORDINAL } }
    if (watch.from.epoch !== epoch) {
      return this.#refuse(
        correlation,
        refusal('epoch-changed', `the cursor is of epoch ${watch.from.epoch}, this is ${epoch}`),
      )
    }
    const past = from === undefined || from.index > index ? [] : pastEvents(member, watch)
    if (!past) return this.#refuse(correlation, refusal('gap', 'events after this cursor are no longer in memory'))
    for (const message of past) this.#addRead(narrowed(message, this.#peer.mayRead))
    this.#watches.set(correlation, watch)
    this.#hub.watchingChanged(this)
  }

  #endWatch(watch: Watch, why: Refused): void {
    this.#watches.delete(watch.correlation)
    this.#refuse(watch.correlation, why)
    this.#hub.watchingChanged(this)
  }

  // --- Rights ---

  /** Returns why this connection may not send the command. */
  #misuse(command: Command): Refused | undefined {
    const rule = sessionRule(command)
    if (rule === 'none') return undefined
    if (rule !== 'own') return refusal(rule.code, rule.message)
    return this.#foreign((command as { readonly session: SessionId }).session)
  }

  #foreign(session: SessionId): Refused | undefined {
    if (this.#sessions.has(session)) return undefined
    // It may have ended or be bound to another connection.
    if (this.#hub.views.sessionSecret(this.#hub.member.stale().state, session) === undefined) {
      return refusal('session-ended', `session ${session} does not exist`)
    }
    return refusal('forbidden', `session ${session} is not attached to this connection`, 'attach it with its secret')
  }

  #bind(session: SessionId): Refused | undefined {
    if (this.#sessions.size >= this.#hub.limits.sessions && !this.#sessions.has(session)) {
      return refusal('limit', `${this.#hub.limits.sessions} sessions are bound to one connection`)
    }
    this.#sessions.add(session)
    this.#hub.bound(session, this)
    return undefined
  }

  // --- Answers ---

  #full(): Refused | undefined {
    const { open } = this.#hub.limits
    return this.#openCalls + this.#reads.waiting < open
      ? undefined
      : refusal('limit', `${open} calls of one stream are open`)
  }

  #call(start: (done: () => void) => void): void {
    this.#openCalls++
    start(() => {
      this.#openCalls--
    })
  }

  #refuse(correlation: number, refused: Refused): void {
    const { role, leaderUrl } = this.#hub.member.status
    const elsewhere = refused.code === 'no-quorum' && role !== 'leader' ? leaderUrl : ''
    this.#add({ kind: 'error', correlation, refused, leaderUrl: elsewhere })
  }

  #endWith(refused: Refused): void {
    this.#refuse(0, refused)
    const messages = this.#out
    this.#out = []
    this.#peer.emit(messages)
    this.close()
    this.#peer.end(refused.message)
  }

  #addRead(message: ServerMessage): void {
    this.#reads.answered(message)
    this.#add(message)
  }

  #add(message: ServerMessage): void {
    if (this.#state === 'closed') return
    this.#out.push(message)
    this.#hub.dirty(this)
  }
}

/** Compares in constant time. */
function sameSecret(a: string, b: string): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
