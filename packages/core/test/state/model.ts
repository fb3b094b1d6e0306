import {
  type Acquire,
  type Adopt,
  type Cancel,
  type CloseSession,
  type Command,
  type Configure,
  type Delete,
  type EndReason,
  type Entry,
  type ErrorCode,
  nameProblem,
  type Numbered,
  type OpenSession,
  type Put,
  type Release,
  type Renew,
  type Steal,
} from '../../src/index.js'
import {
  ackMakesSense,
  bytesOf,
  grantOf,
  type ModelAnswer,
  type ModelApplied,
  type ModelResult,
  type ModelSession,
  ModelState,
  type ModelWaiter,
  no,
  permits,
  UNSEEN_MAX,
  WINDOW,
} from './model-state.js'

/*
 * The rules of the lock service once more, as a reader of its promises would write them down: arrays, linear scans,
 * everything recomputed each time. Slow, and deliberately different from the real state machine.
 */
export class Model extends ModelState {
  clone(): Model {
    return Object.assign(new Model(this.epoch), this, this.copied())
  }

  apply(entry: Entry): ModelApplied {
    this.out = { results: new Array(entry.commands.length), pushes: [], events: [] }
    this.now = Math.max(this.now, entry.at)
    entry.commands.forEach((command, i) => {
      if (command.kind === 'renew') this.out.results[i] = this.renew(command)
    })
    this.serve()
    for (let due = this.firstDue(); due !== undefined; due = this.firstDue()) {
      due.happen()
      this.serve()
    }
    entry.commands.forEach((command, i) => {
      if (command.kind === 'renew') return
      this.out.results[i] = this.command(command)
      this.serve()
    })
    return this.out
  }

  private command(command: Exclude<Command, Renew>): ModelResult {
    switch (command.kind) {
      case 'openSession':
        return this.openSession(command)
      case 'closeSession':
        return this.closeSession(command)
      case 'acquire':
        return this.numbered(command, true, (session) => this.acquire(session, command))
      case 'cancel':
        return this.numbered(command, false, (session) => this.cancel(session, command))
      case 'release':
        return this.release(command)
      case 'adopt':
        return this.numbered(command, true, (session) => this.adopt(session, command))
      case 'steal':
        return this.steal(command)
      case 'put':
      case 'delete':
        return this.write(command)
      case 'configure':
        return this.configure(command)
    }
  }

  private firstDue(): { happen: () => void } | undefined {
    const all = [
      ...this.sessions.map((one) => ({
        due: one.expires,
        kind: 0,
        id: one.id,
        happen: () => this.endSession(one, 'expired'),
      })),
      ...this.waiters
        .filter((one) => one.due >= 0)
        .map((one) => ({ due: one.due, kind: 1, id: one.arrival, happen: () => this.timeOut(one) })),
      ...this.delays.map((one) => ({
        due: one.due,
        kind: 2,
        id: one.id,
        happen: () => {
          this.delays = this.delays.filter((other) => other !== one)
        },
      })),
    ].filter((one) => one.due <= this.now)
    return all.sort((a, b) => a.due - b.due || a.kind - b.kind || a.id - b.id)[0]
  }

  private timeOut(waiter: ModelWaiter): void {
    const session = this.session(waiter.command.session) as ModelSession
    this.leave(waiter, 'timeout')
    this.settle(session, waiter.command.request, no('timeout'))
    const refused = { kind: 'refused', code: 'timeout', message: '' } as const
    this.change(session, { kind: 'refused', number: 0, request: waiter.command.request, refused })
  }

  private openSession(command: OpenSession): ModelResult {
    const { limits } = this
    let session = this.sessions.find((one) => one.nonce === command.nonce)
    if (session === undefined) {
      const codes: ErrorCode[] = []
      if (command.ttlMs < limits.ttlMinMs || command.ttlMs > limits.ttlMaxMs) codes.push('invalid')
      if (bytesOf(command.client) > 256) codes.push('invalid')
      if (this.sessions.length >= limits.sessions) codes.push('limit')
      if (this.full) codes.push('limit')
      if (codes.length > 0) return no(...codes)
      const { nonce, secret, ttlMs: ttl, client } = command
      const expires = this.now + ttl
      session = {
        id: ++this.counter,
        nonce,
        secret,
        ttl,
        client,
        expires,
        lowest: 1,
        acked: [],
        answers: [],
        changeNumber: 0,
        changes: [],
      }
      this.sessions.push(session)
      this.out.events.push({ kind: 'sessionOpened', session: session.id as never, client })
    }
    return { kind: 'opened', session: session.id as never, secret: session.secret, ttlMs: session.ttl as never }
  }

  private renew(command: Renew): ModelResult {
    const session = this.session(command.session)
    if (session === undefined) return no('session-ended')
    if (command.ack !== undefined && !ackMakesSense(session, command.ack)) return no('invalid')
    if (command.seen !== undefined && command.seen > session.changeNumber) return no('invalid')
    if (command.ack !== undefined) this.acknowledge(session, command.ack)
    session.expires = this.now + session.ttl
    session.changes = session.changes.filter((one) => one.number > (command.seen ?? 0))
    return { kind: 'renewed', changes: [...session.changes] }
  }

  private closeSession(command: CloseSession): ModelResult {
    const session = this.session(command.session)
    if (session === undefined) return no('session-ended')
    if (bytesOf(command.reason) > 256) return no('invalid')
    this.endSession(session, command.by === 'owner' ? 'closed' : command.by, command.reason)
    return { kind: 'closed' }
  }

  private endSession(session: ModelSession, reason: EndReason, text = ''): void {
    this.sessions = this.sessions.filter((one) => one !== session)
    for (const waiter of this.waiters.filter((one) => one.command.session === session.id))
      this.leave(waiter, 'session-ended')
    for (const hold of this.holds.filter((one) => one.session === session.id)) {
      if (hold.persistent && hold.confirmed) hold.session = undefined
      else this.endHold(hold, reason, reason !== 'closed', { text })
    }
    this.out.pushes.push({ session: session.id, ended: reason })
    this.out.events.push({ kind: 'sessionEnded', session: session.id as never, reason })
  }

  private numbered(command: Numbered, half: boolean, run: (session: ModelSession) => ModelResult): ModelResult {
    const session = this.session(command.session)
    if (session === undefined) return no('session-ended')
    const { request, ack } = command
    const makesSense =
      request >= 1 &&
      ack.lowest <= request &&
      !ack.also.includes(request) &&
      request <= Math.max(session.lowest, ack.lowest) + WINDOW &&
      ackMakesSense(session, ack)
    if (!makesSense) return no('invalid')
    this.acknowledge(session, ack)
    if (request < session.lowest || session.acked.includes(request)) return no('expired-request')
    const known = session.answers.find((one) => one.request === request)
    if (known !== undefined) return this.present(known)
    const result = half && request >= session.lowest + WINDOW / 2 ? no('limit') : run(session)
    if (!session.answers.some((one) => one.request === request)) session.answers.push({ request, result })
    return result
  }

  private present(answer: ModelAnswer): ModelResult {
    const waiter = this.waiters.find((one) => one.arrival === answer.waiter)
    if (waiter !== undefined) return { kind: 'queued', position: this.position(waiter) }
    const hold = this.holds.find((one) => one.id === answer.hold)
    if (hold !== undefined) return { kind: 'granted', grant: grantOf(hold) }
    return answer.result as ModelResult
  }

  private acquire(session: ModelSession, command: Acquire): ModelResult {
    const { limits } = this
    const { locks, lockDelayMs, request } = command
    const codes: ErrorCode[] = []
    const names = locks.map((one) => one.name)
    if (locks.length === 0 || new Set(names).size < names.length) codes.push('invalid')
    if (names.some((name) => nameProblem(name) !== undefined)) codes.push('invalid')
    if (locks.some((one) => typeof one.mode === 'object' && (one.mode.permits < 1 || one.mode.permits > 65_536)))
      codes.push('invalid')
    if (lockDelayMs > limits.lockDelayMaxMs) codes.push('invalid')
    if ((command.persistent || command.portable) && command.secret === undefined) codes.push('invalid')
    if (locks.length > limits.locksPerAcquire || command.data.length > limits.dataBytes) codes.push('limit')
    if (this.holds.length + this.waiters.length >= limits.holds || this.full) codes.push('limit')
    if (this.heldBy(session) >= limits.holdsPerSession || session.changes.length >= UNSEEN_MAX) codes.push('limit')
    if (locks.some((one) => this.inUse(one.name) && this.sizeOf(one.name) !== permits(one))) codes.push('mismatch')
    if (codes.length > 0) return no(...codes)
    for (const one of locks) if (!this.inUse(one.name)) this.setSize(one.name, permits(one))
    const blocked = locks.some((one) => this.queue(one.name).length > 0 || !this.fits(one))
    if (!blocked) {
      const hold = this.grant(session, command)
      session.answers.push({ request, hold: hold.id })
      return { kind: 'granted', grant: grantOf(hold) }
    }
    if (command.waitMs === 0) return no('busy')
    if (names.some((name) => this.queue(name).length >= limits.waitersPerLock)) return no('limit')
    const waiter = { arrival: ++this.arrivals, due: command.waitMs < 0 ? -1 : this.now + command.waitMs, command }
    this.waiters.push(waiter)
    session.answers.push({ request, waiter: waiter.arrival })
    this.out.events.push({ kind: 'queued', session: session.id as never, request, names })
    return { kind: 'queued', position: this.position(waiter) }
  }

  private cancel(session: ModelSession, { request, target }: Cancel): ModelResult {
    if (target < 1 || target === request || target > session.lowest + WINDOW) return no('invalid')
    if (target < session.lowest || session.acked.includes(target)) return no('expired-request')
    const answer = session.answers.find((one) => one.request === target)
    if (answer === undefined) {
      session.answers.push({ request: target, result: no('aborted') })
      return { kind: 'cancelled', was: 'unknown' }
    }
    const waiter = this.waiters.find((one) => one.arrival === answer.waiter)
    const hold = this.holds.find((one) => one.id === answer.hold)
    if (waiter !== undefined) this.leave(waiter, 'cancelled')
    else if (hold !== undefined) this.endHold(hold, 'released', false, {})
    else return { kind: 'cancelled', was: 'ended' }
    this.settle(session, target, no('aborted'))
    return { kind: 'cancelled', was: waiter === undefined ? 'granted' : 'queued' }
  }

  private release(command: Release): ModelResult {
    const run = (): ModelResult => {
      const hold = this.holds.find((one) => one.id === command.hold)
      const mine = hold?.session !== undefined && hold.session === command.session
      const knows = hold?.secret !== undefined && hold.secret === command.secret
      if (hold === undefined || (!mine && !knows)) return no('not-holder')
      this.endHold(hold, 'released', false, { tell: !mine })
      return { kind: 'released' }
    }
    const { session, request, ack = { lowest: 1, also: [] } } = command
    if (session === undefined) return run()
    if (request === undefined) return this.session(session) === undefined ? no('session-ended') : run()
    return this.numbered({ session, request, ack }, false, run)
  }

  private adopt(session: ModelSession, command: Adopt): ModelResult {
    const hold = this.holds.find((one) => one.id === command.hold)
    if (hold === undefined || hold.secret === undefined || hold.secret !== command.secret) return no('not-holder')
    if (this.heldBy(session) >= this.limits.holdsPerSession || session.changes.length >= UNSEEN_MAX || this.full)
      return no('limit')
    const id = ++this.counter
    const locks = hold.locks.map((one) => (one.mode === 'shared' ? one : { ...one, token: id as never }))
    const moved = {
      ...hold,
      id,
      locks,
      session: session.id,
      client: session.client,
      secret: command.newSecret,
      told: 0,
    }
    this.endHold(hold, 'moved', false, { tell: true, actor: session.client })
    this.holds.push(moved)
    session.answers.push({ request: command.request, hold: id })
    this.out.events.push({
      kind: 'held',
      grant: { hold: id as never, locks },
      session: session.id as never,
      client: session.client,
    })
    return { kind: 'granted', grant: grantOf(moved) }
  }

  private steal({ hold: id, actor, reason }: Steal): ModelResult {
    const hold = this.holds.find((one) => one.id === id)
    if (bytesOf(actor) > 256 || bytesOf(reason) > 256) return no('invalid')
    if (hold === undefined) return no('not-holder')
    this.endHold(hold, 'stolen', true, { tell: true, actor, text: reason })
    return { kind: 'stolen' }
  }

  private write(command: Put | Delete): ModelResult {
    const { session, request, ack = { lowest: 1, also: [] } } = command
    if (session !== undefined && request !== undefined) {
      return this.numbered({ session, request, ack }, true, () => this.writeNow(command))
    }
    return command.ifVersion === undefined || command.ifVersion === 0n ? no('invalid') : this.writeNow(command)
  }

  private writeNow(command: Put | Delete): ModelResult {
    const { key, ifVersion, fence } = command
    const register = this.registers.find((one) => one.key === key)
    const version = register?.version ?? 0n
    const codes: ErrorCode[] = []
    if (nameProblem(key) !== undefined) codes.push('invalid')
    if (command.kind === 'put' && command.value.length > this.limits.registerBytes) codes.push('limit')
    if (register?.lock !== undefined && register.lock !== fence?.lock) codes.push('mismatch')
    if (fence !== undefined) {
      const hold = this.holds.find((one) => one.id === fence.hold)
      const held = hold?.locks.find((one) => one.name === fence.lock)
      if (register?.lock === undefined && ifVersion === undefined) codes.push('invalid')
      if (held === undefined || hold?.session === undefined || hold.session !== command.session)
        codes.push('not-holder')
      else if (held.mode !== 'exclusive') codes.push('mismatch')
    }
    if (ifVersion !== undefined && ifVersion !== version) codes.push('version-conflict')
    if (command.kind === 'put' && codes.length === 0) {
      if (this.full || (register === undefined && this.registers.length >= this.limits.registers)) codes.push('limit')
    }
    if (codes.length > 0) return codes.includes('version-conflict') ? { ...no(...codes), version } : no(...codes)
    this.registers = this.registers.filter((one) => one !== register)
    if (command.kind === 'put') {
      const written = (BigInt(this.epoch) << 48n) + BigInt(++this.counter)
      this.registers.push({ key, value: command.value, version: written, lock: fence?.lock })
      this.out.events.push({ kind: 'put', key, version: written })
      return { kind: 'put', version: written }
    }
    if (register !== undefined) this.out.events.push({ kind: 'deleted', key, version })
    return { kind: 'deleted' }
  }

  private configure({ limits, level, permits: resize, floor }: Configure): ModelResult {
    const codes: ErrorCode[] = []
    if (level !== undefined && level !== 2) codes.push('invalid')
    if (resize !== undefined) {
      if (!this.inUse(resize.name) || this.sizeOf(resize.name) === 0) codes.push('mismatch')
      if (resize.size < 1 || resize.size > 65_536) codes.push('invalid')
    }
    // 34 years of milliseconds after 2024, 128 values each.
    if (floor !== undefined && !(Number.isInteger(floor) && floor <= 1_073_001_600_000 * 128)) codes.push('invalid')
    if (codes.length > 0) return no(...codes)
    this.limits = { ...this.limits, ...limits }
    if (floor !== undefined) this.counter = Math.max(this.counter, floor)
    if (resize !== undefined) this.setSize(resize.name, resize.size)
    return { kind: 'configured' }
  }
}
