import fc from 'fast-check'
import {
  type Ack,
  type Acquire,
  type Command,
  FLOOR_MAX,
  type Limits,
  type LockRequest,
  type Mode,
} from '../../src/index.js'
import type { Model } from './model.js'

/** A wish for a command, in numbers that are made sense of only when the state is known: so that commands meet. */
export interface Wish {
  readonly kind: Command['kind'] | 'repeat'
  readonly who: number
  readonly what: number
  readonly how: number
  readonly ack: number
}
export interface Turn {
  readonly time: number
  readonly wishes: readonly Wish[]
}

const WEIGHTS: Record<Wish['kind'], number> = {
  openSession: 2,
  renew: 5,
  closeSession: 1,
  acquire: 18,
  cancel: 3,
  release: 5,
  adopt: 3,
  steal: 2,
  put: 3,
  delete: 1,
  configure: 1,
  repeat: 4,
}

const number = fc.nat({ max: 9999 })
const wish: fc.Arbitrary<Wish> = fc.oneof(
  ...Object.entries(WEIGHTS).map(([kind, weight]) => ({
    weight,
    arbitrary: fc.record({
      kind: fc.constant(kind as Wish['kind']),
      who: number,
      what: number,
      how: number,
      ack: number,
    }),
  })),
)
export const turns: fc.Arbitrary<Turn[]> = fc.array(
  fc.record({ time: number, wishes: fc.array(wish, { minLength: 1, maxLength: 5, size: 'max' }) }),
  { minLength: 10, maxLength: 60, size: 'max' },
)

export function hex(n: number): string {
  return n.toString(16).padStart(32, '0')
}

const SHAPES: readonly (readonly LockRequest[])[] = [
  [one('x')],
  [one('x')],
  [one('x')],
  [one('x')],
  [one('y')],
  [one('y')],
  [one('y'), one('x', 'shared')],
  [one('x', 'shared')],
  [one('x', 'shared')],
  [one('y', 'shared')],
  [one('x'), one('y')],
  [one('y', 'shared'), one('x')],
  [one('x', 'shared'), one('y', 'shared')],
  [one('p', { permits: 2 })],
  [one('p', { permits: 2 })],
  [one('p', { permits: 2 })],
  [one('p', { permits: 3 }), one('x')],
  [one('p', { permits: 2 }), one('y', 'shared')],
  [one('p')],
  [one('x', { permits: 1 })],
  [one('x'), one('x')],
  [one('\n')],
  [],
]
const WAITS = [0, 50, 150, 250, 5000, -1, -1, -1]
const DELAYS = [0, 0, 0, 50, 100, 60_001]
const TTLS = [250, 400, 1000, 1000, 5000, 5000, 20_000, 99]
const FLOORS = [0, 3, 20, 2 ** 31, 11_776_000_000_000, 11_776_000_000_001, FLOOR_MAX, FLOOR_MAX + 1]
const LIMITS: Partial<Limits>[] = [
  { sessions: 3 },
  { sessions: 100 },
  { holds: 4 },
  { holds: 1000 },
  { holdsPerSession: 2 },
  { holdsPerSession: 100 },
  { waitersPerLock: 1 },
  { waitersPerLock: 100 },
  { locksPerAcquire: 1 },
  { locksPerAcquire: 64 },
  { dataBytes: 1 },
  { dataBytes: 10, registers: 100 },
  { registers: 1 },
  { registerBytes: 1 },
  { registerBytes: 100 },
  { lockDelayMaxMs: 50 },
  { lockDelayMaxMs: 60_000 },
]

function one(name: string, mode: Mode = 'exclusive'): LockRequest {
  return { name, mode }
}

/** Makes commands of wishes: a few clients that number their requests, mostly behave, and sometimes do not. */
export class Clients {
  private nonces = 0
  private secrets = 0
  /** Last number used by session. */
  private readonly numbers = new Map<number, number>()
  private readonly sent: Command[] = []

  constructor(private readonly model: Model) {}

  /** The entry's stamp: now, a bit later, or just before, at or after the next thing that is due, or long after. */
  time(pick: number): number {
    const { now } = this.model
    const next = this.model.nextDeadline() ?? now + 10
    const times = [
      now,
      now,
      now,
      now,
      now,
      now + 1,
      now + 1,
      now + 20,
      now + 50,
      next - 1,
      next,
      next,
      next + 1,
      now - 5,
      now + 300,
    ]
    return Math.max(0, times[pick % times.length] as number)
  }

  command(wish: Wish): Command {
    // Without clients nothing happens.
    const few = this.model.sessions.length < 3 && wish.ack % 3 !== 0
    const command = few
      ? this.fresh({ ...wish, kind: 'openSession' })
      : wish.kind === 'repeat'
        ? this.repeat(wish)
        : this.fresh(wish)
    this.sent.push(command)
    return command
  }

  /** Something that was sent before, from lately or from long ago, exactly as it was. */
  private repeat(wish: Wish): Command {
    const back = wish.how % 3 === 0 ? wish.what : wish.what % 6
    return (
      this.sent[this.sent.length - 1 - (back % Math.max(1, this.sent.length))] ??
      this.fresh({ ...wish, kind: 'openSession' })
    )
  }

  private fresh({ kind, who, what, how, ack }: Wish): Command {
    const session = this.session(who)
    const hold = this.hold(session, what)
    const secret = this.secretOf(hold, how)
    switch (kind as Command['kind']) {
      case 'openSession':
        if (this.model.sessions.length >= 4 && how % 8 !== 0) return { kind: 'renew', session }
        return {
          kind: 'openSession',
          nonce: hex(how % 4 === 0 ? Math.max(1, this.nonces) : ++this.nonces),
          secret: hex(1000 + ++this.secrets),
          ttlMs: TTLS[what % TTLS.length] as never,
          client: how % 50 === 0 ? 'ü'.repeat(129) : `c${who % 10}`,
          local: false,
        }
      case 'renew': {
        const seen = this.model.session(session)?.changeNumber ?? 0
        return {
          kind: 'renew',
          session,
          ...(how % 3 === 0 ? {} : { seen: how % 7 === 0 ? seen + 1 : how % 2 === 0 ? seen : what % (seen + 1) }),
          ...(how % 4 === 0 ? { ack: this.ack(session, ack, 0) } : {}),
        }
      }
      case 'closeSession':
        if (how % 2 === 0) return { kind: 'renew', session }
        return {
          kind,
          session,
          by: (['owner', 'operator', 'death'] as const)[how % 3] as 'owner',
          reason: 'r',
        } as never
      case 'acquire':
        return this.acquire(session, what, how, ack)
      case 'cancel': {
        const mine = this.model.session(session)?.answers.map((one) => one.request) ?? []
        const open = this.model.waiters
          .filter((one) => one.command.session === session)
          .map((one) => one.command.request)
        const last = this.numbers.get(session) ?? 0
        const target = [...mine, ...open, ...open, last + 1, last + 2, last, last + 1026, 0][
          what % (mine.length + 2 * open.length + 5)
        ]
        return { kind: 'cancel', ...this.numbered(session, how, ack), target: target as number }
      }
      case 'release':
        if (how % 6 === 0) return { kind: 'release', hold, secret }
        if (how % 6 === 1) return { kind: 'release', session, hold }
        return { kind: 'release', ...this.numbered(session, how, ack), hold, ...(how % 2 === 0 ? { secret } : {}) }
      case 'adopt':
        return {
          kind: 'adopt',
          ...this.numbered(session, how, ack),
          hold: this.portable(what),
          secret: this.secretOf(this.portable(what), how),
          newSecret: hex(2000 + ++this.secrets),
        }
      case 'steal':
        return { kind: 'steal', hold, actor: 'op', reason: how % 30 === 0 ? 'ü'.repeat(129) : 'why' }
      case 'put':
      case 'delete':
        return this.write(kind as 'put', session, what, how, ack)
      case 'configure': {
        if (how % 3 !== 2)
          return {
            kind: 'configure',
            permits: { name: how % 7 === 0 ? 'x' : 'p', size: what % 60 === 0 ? 65_537 : what % 5 },
          }
        return {
          kind: 'configure',
          limits: LIMITS[what % LIMITS.length] as Partial<Limits>,
          ...(how % 5 === 0 ? { level: what % 4 } : {}),
          ...(how % 4 === 0 ? { floor: FLOORS[what % FLOORS.length] as never } : {}),
        }
      }
    }
  }

  private acquire(session: never, what: number, how: number, ack: number): Acquire {
    const persistent = how % 5 === 0
    const portable = how % 4 === 0
    return {
      kind: 'acquire',
      ...this.numbered(session, how, ack),
      locks: SHAPES[what % SHAPES.length] as readonly LockRequest[],
      waitMs: WAITS[how % WAITS.length] as number,
      lockDelayMs: DELAYS[(how >> 3) % DELAYS.length] as never,
      persistent,
      portable,
      ...((persistent || portable) && how % 61 !== 0 ? { secret: hex(3000 + ++this.secrets) } : {}),
      data: new Uint8Array(how % 3),
    }
  }

  private write(kind: 'put' | 'delete', session: never, what: number, how: number, ack: number): Command {
    const key = ['k', 'l'][what % 2] as string
    const register = this.model.registers.find((one) => one.key === key)
    const version = register?.version ?? 0n
    const holds = this.model.holds.filter((one) => one.session === session)
    const hold = holds[what % Math.max(1, holds.length)]
    const lock = register?.lock !== undefined && how % 5 !== 0 ? register.lock : (hold?.locks[0]?.name ?? 'x')
    return {
      kind,
      key,
      ...(how % 7 === 0 ? {} : this.numbered(session, how, ack)),
      ...(how % 3 === 0 ? {} : { ifVersion: how % 11 === 0 ? version + 1n : version }),
      ...((what >> 1) % 2 === 0 ? {} : { fence: { hold: (hold?.id ?? 1) as never, lock } }),
      ...(kind === 'put' ? { value: new Uint8Array([how % 256, 1].slice(0, what % 3)) } : {}),
    } as Command
  }

  private session(who: number): never {
    const { sessions, counter } = this.model
    if (who % 60 === 0) return (who % (counter + 2)) as never
    return (sessions[who % Math.max(1, sessions.length)]?.id ?? 1) as never
  }

  /** Mostly a hold of the session, sometimes one of another session, sometimes none. */
  private hold(session: number, what: number): never {
    const mine = this.model.holds.filter((one) => one.session === session)
    const from = what % 4 === 0 || mine.length === 0 ? this.model.holds : mine
    if (what % 23 === 0) return (what % (this.model.counter + 3)) as never
    return (from[what % Math.max(1, from.length)]?.id ?? 1) as never
  }

  private portable(what: number): never {
    const some = this.model.holds.filter((one) => one.secret !== undefined)
    return (some[what % Math.max(1, some.length)]?.id ?? 1) as never
  }

  private secretOf(hold: number, how: number): string {
    return (how % 9 === 0 ? undefined : this.model.holds.find((one) => one.id === hold)?.secret) ?? hex(1)
  }

  private numbered(session: never, how: number, ack: number): { session: never; request: number; ack: Ack } {
    const last = this.numbers.get(session) ?? 0
    const jump = how % 97 === 0 ? 600 : how % 89 === 0 ? 1100 : how % 10 === 0 ? 2 : 1
    const request = how % 31 === 0 ? Math.max(1, last - (how % 3)) : last + jump
    // A number far ahead is a slip: the client continues where it was.
    if (jump <= 2) this.numbers.set(session, Math.max(last, request))
    return { session, request, ack: this.ack(session, ack, request) }
  }

  /** What a well-behaved client acknowledges, a part of it, nothing, or nonsense. */
  private ack(session: number, pick: number, request: number): Ack {
    const known = this.model.session(session)
    const lowest = known?.lowest ?? 1
    const waiting = this.model.waiters
      .filter((one) => one.command.session === session)
      .map((one) => one.command.request)
    const open = waiting.length > 0 ? Math.min(...waiting) : Math.max(1, request)
    const answered = (known?.answers ?? []).map((one) => one.request).filter((one) => !waiting.includes(one))
    switch (pick % 24) {
      case 0:
      case 1:
        return { lowest: Math.max(lowest, Math.min(open, Math.max(1, request))), also: [] }
      case 2:
      case 3:
        return { lowest, also: answered.filter((one) => one !== request).slice(0, 1 + (pick % 5)) }
      case 4:
        return { lowest: Math.max(1, request - 1), also: [] }
      case 5:
        return { lowest: 1 + (pick % 8), also: [1 + ((pick >> 3) % 12)] }
      case 6:
        return { lowest: pick % 3, also: [pick % 1200] }
      default:
        return { lowest: 1, also: [] }
    }
  }
}
