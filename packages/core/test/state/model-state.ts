import {
  type Ack,
  type Acquire,
  type Change,
  DEFAULT_LIMITS,
  type EndReason,
  type ErrorCode,
  type Event,
  type Grant,
  type HeldLock,
  type Limits,
  type LockRequest,
  type Result,
} from '../../src/index.js'

/** A refusal; `codes` are all the reasons that apply. The first one that is seen outside is pinned for repeats. */
export interface ModelRefusal {
  kind: 'refused'
  codes: ErrorCode[]
  version?: bigint
}
export type ModelResult = Exclude<Result, { kind: 'refused' }> | ModelRefusal

export interface ModelAnswer {
  request: number
  /** The acquire or adoption is one of these, as long as it lives. */
  waiter?: number | undefined
  hold?: number | undefined
  result?: ModelResult | undefined
}

export interface ModelSession {
  id: number
  nonce: string
  secret: string
  ttl: number
  client: string
  expires: number
  lowest: number
  acked: number[]
  answers: ModelAnswer[]
  changeNumber: number
  changes: Change[]
}

export interface ModelHold {
  id: number
  session: number | undefined
  client: string
  locks: HeldLock[]
  persistent: boolean
  portable: boolean
  confirmed: boolean
  secret: string | undefined
  delay: number
  /** The number of its unseen `granted` change. */
  told: number
}

export interface ModelWaiter {
  arrival: number
  due: number
  command: Acquire
}

export interface ModelDelay {
  id: number
  due: number
  locks: HeldLock[]
}

export interface ModelRegister {
  key: string
  value: Uint8Array
  version: bigint
  lock: string | undefined
}

export interface ModelApplied {
  results: ModelResult[]
  pushes: { session: number; change?: Change; ended?: EndReason }[]
  events: Event[]
}

export const WINDOW = 1024
export const UNSEEN_MAX = 2048

/** What the naive model remembers, and the steps that its commands are made of. */
export class ModelState {
  now = 0
  counter = 0
  arrivals = 0
  limits: Limits
  sessions: ModelSession[] = []
  holds: ModelHold[] = []
  waiters: ModelWaiter[] = []
  delays: ModelDelay[] = []
  registers: ModelRegister[] = []
  /** Sizes of the semaphores in use. */
  sizes: { name: string; size: number }[] = []
  protected out: ModelApplied = { results: [], pushes: [], events: [] }

  constructor(
    readonly epoch: number,
    limits: Partial<Limits> = {},
  ) {
    this.limits = { ...DEFAULT_LIMITS, ...limits }
  }

  /** The lists, copied deep enough that the copy may go its own way. */
  protected copied(): object {
    const sessions = this.sessions.map((one) => ({
      ...one,
      acked: [...one.acked],
      answers: one.answers.map((answer) => ({ ...answer })),
      changes: [...one.changes],
    }))
    const holds = this.holds.map((one) => ({ ...one }))
    const lists = {
      waiters: [...this.waiters],
      delays: [...this.delays],
      registers: [...this.registers],
      sizes: [...this.sizes],
    }
    return { sessions, holds, ...lists }
  }

  nextDeadline(): number | undefined {
    const times = [
      ...this.sessions.map((one) => one.expires),
      ...this.waiters.filter((one) => one.due >= 0).map((one) => one.due),
      ...this.delays.map((one) => one.due),
    ]
    return times.length === 0 ? undefined : Math.min(...times)
  }

  session(id: number | undefined): ModelSession | undefined {
    return this.sessions.find((one) => one.id === id)
  }

  protected change(session: ModelSession, change: Change): number {
    const numbered = { ...change, number: ++session.changeNumber }
    session.changes.push(numbered)
    this.out.pushes.push({ session: session.id, change: numbered })
    return session.changeNumber
  }

  protected acknowledge(session: ModelSession, ack: Ack): void {
    const isNew = (request: number): boolean => request >= session.lowest && !session.acked.includes(request)
    for (const request of ack.also) {
      if (!isNew(request)) continue
      this.forget(session, request)
      session.acked.push(request)
    }
    const below = [...session.answers].filter((one) => one.request < ack.lowest).sort((a, b) => a.request - b.request)
    for (const answer of below) this.forget(session, answer.request)
    session.lowest = Math.max(session.lowest, ack.lowest)
    session.acked = session.acked.filter((request) => request >= session.lowest)
  }

  protected forget(session: ModelSession, request: number): void {
    const answer = session.answers.find((one) => one.request === request)
    session.answers = session.answers.filter((one) => one !== answer)
    const waiter = this.waiters.find((one) => one.arrival === answer?.waiter)
    if (waiter !== undefined) this.leave(waiter, 'cancelled')
    const hold = this.holds.find((one) => one.id === answer?.hold)
    if (hold === undefined) return
    hold.confirmed = true
    session.changes = session.changes.filter((one) => one.number !== hold.told)
  }

  protected settle(session: ModelSession | undefined, request: number, result: ModelResult): void {
    const answer = session?.answers.find((one) => one.request === request)
    if (answer !== undefined) Object.assign(answer, { waiter: undefined, hold: undefined, result })
  }

  get full(): boolean {
    return this.counter >= 2 ** 48 - 1
  }

  protected heldBy(session: ModelSession): number {
    const mine = this.waiters.filter((one) => one.command.session === session.id)
    return this.holds.filter((one) => one.session === session.id).length + mine.length
  }

  protected inUse(name: string): boolean {
    return this.heldOn(name).length + this.delayedOn(name).length + this.queue(name).length > 0
  }

  protected sizeOf(name: string): number {
    return this.sizes.find((one) => one.name === name)?.size ?? 0
  }

  protected setSize(name: string, size: number): void {
    this.sizes = [...this.sizes.filter((one) => one.name !== name), { name, size }]
  }

  heldOn(name: string): HeldLock[] {
    return this.holds.flatMap((hold) => hold.locks.filter((one) => one.name === name))
  }

  protected delayedOn(name: string): HeldLock[] {
    return this.delays.flatMap((delay) => delay.locks.filter((one) => one.name === name))
  }

  protected queue(name: string): ModelWaiter[] {
    return this.waiters.filter((one) => one.command.locks.some((lock) => lock.name === name))
  }

  protected position(waiter: ModelWaiter): number {
    return Math.max(...waiter.command.locks.map((one) => this.queue(one.name).indexOf(waiter) + 1))
  }

  /** Whether holds and delays admit this request. Earlier waiters are not considered. */
  protected fits({ name, mode }: LockRequest): boolean {
    const held = this.heldOn(name)
    const delayed = this.delayedOn(name)
    if (mode === 'exclusive') return held.length + delayed.length === 0
    if (mode === 'shared') return [...held, ...delayed].every((one) => one.mode === 'shared')
    return held.length + delayed.length < this.sizeOf(name)
  }

  protected grant(session: ModelSession, command: Acquire): ModelHold {
    const id = ++this.counter
    const locks = command.locks.map(({ name, mode }): HeldLock => {
      if (mode === 'exclusive') return { name, mode, token: id as never }
      if (mode === 'shared') return { name, mode, token: (this.heldOn(name)[0]?.token ?? id) as never }
      const taken = [...this.heldOn(name), ...this.delayedOn(name)].map((one) => one.slot)
      let slot = 0
      while (taken.includes(slot)) slot++
      return { name, mode, token: id as never, slot }
    })
    const { persistent, portable } = command
    const secret = persistent || portable ? command.secret : undefined
    const { client } = session
    const hold = {
      id,
      session: session.id,
      client,
      locks,
      persistent,
      portable,
      confirmed: false,
      secret,
      delay: command.lockDelayMs,
      told: 0,
    }
    this.holds.push(hold)
    this.out.events.push({ kind: 'held', grant: { hold: id as never, locks }, session: session.id as never, client })
    return hold
  }

  /** Grants, by arrival, the waiters that are at the front of all their queues and fit, until there are none. */
  protected serve(): void {
    for (;;) {
      const next = this.waiters.find((waiter) => {
        const session = this.session(waiter.command.session)
        if (session === undefined || session.expires <= this.now) return false
        return waiter.command.locks.every((one) => this.queue(one.name)[0] === waiter && this.fits(one))
      })
      if (next === undefined || this.full) return
      const session = this.session(next.command.session) as ModelSession
      this.waiters = this.waiters.filter((one) => one !== next)
      const hold = this.grant(session, next.command)
      const { request } = next.command
      Object.assign(session.answers.find((one) => one.request === request) as ModelAnswer, {
        waiter: undefined,
        hold: hold.id,
      })
      hold.told = this.change(session, { kind: 'granted', number: 0, request, grant: grantOf(hold) })
    }
  }

  protected leave(waiter: ModelWaiter, reason: 'timeout' | 'cancelled' | 'session-ended'): void {
    this.waiters = this.waiters.filter((one) => one !== waiter)
    const { session, request, locks } = waiter.command
    this.out.events.push({ kind: 'unqueued', session, request, names: locks.map((one) => one.name), reason })
  }

  protected endHold(
    hold: ModelHold,
    reason: EndReason,
    delay: boolean,
    options: { tell?: boolean; actor?: string; text?: string },
  ): void {
    const { actor = '', text = '' } = options
    this.holds = this.holds.filter((one) => one !== hold)
    if (delay && hold.delay > 0) this.delays.push({ id: hold.id, due: this.now + hold.delay, locks: hold.locks })
    const owner = this.session(hold.session)
    if (owner !== undefined) {
      const answer = owner.answers.find((one) => one.hold === hold.id)
      if (answer !== undefined) this.settle(owner, answer.request, { kind: 'ended', hold: hold.id as never, reason })
      if (options.tell) this.change(owner, { kind: 'ended', number: 0, hold: hold.id as never, reason, text })
      else owner.changes = owner.changes.filter((one) => one.number !== hold.told)
    }
    this.out.events.push({ kind: 'freed', hold: hold.id as never, locks: hold.locks, reason, actor, text })
  }
}

export function no(...codes: ErrorCode[]): ModelRefusal {
  return { kind: 'refused', codes }
}

export function permits({ mode }: LockRequest): number {
  return typeof mode === 'object' ? mode.permits : 0
}

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length
}

export function grantOf(hold: ModelHold): Grant {
  const grant = { hold: hold.id as never, locks: hold.locks }
  return hold.secret === undefined ? grant : { ...grant, secret: hold.secret }
}

export function ackMakesSense(session: ModelSession, ack: Ack): boolean {
  const end = Math.max(session.lowest, ack.lowest) + WINDOW
  return ack.lowest >= 1 && ack.also.length <= WINDOW && ack.also.every((request) => request >= 1 && request <= end)
}
