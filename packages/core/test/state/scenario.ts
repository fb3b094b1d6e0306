import {
  type Applied,
  type Command,
  type Grant,
  type HeldLock,
  type LockRequest,
  type Mode,
  type Result,
  type SessionId,
  LockState,
  type Millis,
  parseDuration,
} from '../../src/index.js'
import { Bench } from './support.js'

/*
 * A scenario is a text of directives, each followed by `----` and by everything that it brought about:
 *
 *   open S [ttl=10s]                     acquire S LOCK… [wait=0|5s|forever] [delay=1s] [persistent] [portable] [request=N] [ack=N]
 *   renew S [seen=N] [ack=N]             release S HOLD        cancel S REQUEST       steal HOLD       adopt S HOLD [secret=X]
 *   close S [by=operator]                put [S] KEY VALUE [version=N] [fence=HOLD:LOCK]   delete …     advance 5s
 *   resize NAME SIZE                     restart
 *
 * LOCK is NAME (exclusive), NAME:shared or NAME:N (one of N permits); S is a name of a session; HOLD, N are numbers.
 */

export interface Step {
  readonly directive: string
  readonly expected: string
}

/** Splits a scenario into its steps; comments and blank lines between them are kept by {@link rewrite} only. */
export function parseScenario(text: string): Step[] {
  const steps: Step[] = []
  const blocks = text.split(/\n\s*\n/)
  for (const block of blocks) {
    const lines = block.split('\n').filter((line) => !line.startsWith('#') && line.trim() !== '')
    if (lines.length === 0) continue
    const bar = lines.indexOf('----')
    if (bar < 1) throw new Error(`a step without ----: ${lines[0]}`)
    steps.push({ directive: lines.slice(0, bar).join('\n'), expected: lines.slice(bar + 1).join('\n') })
  }
  return steps
}

export function rewrite(text: string, outputs: readonly string[]): string {
  let next = 0
  return `${text
    .trimEnd()
    .split(/\n\s*\n/)
    .map((block) => {
      const lines = block.split('\n')
      if (lines.every((line) => line.startsWith('#') || line.trim() === '')) return block
      const bar = lines.indexOf('----')
      const head = bar < 0 ? lines : lines.slice(0, bar)
      return [...head, '----', outputs[next++]].join('\n')
    })
    .join('\n\n')}\n`
}

export class ScenarioRunner {
  private bench = new Bench()
  private readonly names = new Map<string, SessionId>()
  private readonly secrets = new Map<number, string>()
  private secret = 0

  run(directive: string): string {
    const lines: string[] = []
    const commands: Command[] = []
    for (const line of directive.split('\n')) {
      const words = line.trim().split(/\s+/)
      if (words[0] === 'advance') {
        this.bench.at += parseDuration(words[1] as string, 'advance')
      } else if (words[0] === 'restart') {
        const before = this.bench.state.hash()
        const state = LockState.restore(this.bench.state.snapshot())
        if (state.hash() !== before) throw new Error(`the restored state has hash ${state.hash()}, not ${before}`)
        Object.assign(this.bench, { state })
      } else commands.push(this.command(words))
    }
    this.describe(this.bench.apply(commands), commands, lines)
    return lines.length === 0 ? 'ok' : lines.join('\n')
  }

  private session(name: string): SessionId {
    return this.names.get(name) ?? (Number(name.replace(/\D/g, '')) as SessionId)
  }

  private nameOf(id: number): string {
    for (const [name, session] of this.names) if (session === id) return name
    return String(id)
  }

  private command(words: string[]): Command {
    const [kind, ...rest] = words
    const options = new Map<string, string>()
    const plain: string[] = []
    for (const word of rest) {
      const match = /^([a-z]+)=(.*)$/.exec(word)
      if (match) options.set(match[1] as string, match[2] as string)
      else plain.push(word)
    }
    const flag = (name: string) => plain.includes(name)
    const number = (name: string) => (options.has(name) ? Number(options.get(name)) : undefined)
    const first = plain[0] ?? ''
    const session = this.session(first)
    const ack = { lowest: number('ack') ?? 1, also: [] }
    const request = () => number('request') ?? this.bench.next(session)
    switch (kind) {
      case 'open': {
        const hex = (++this.secret).toString(16).padStart(32, '0')
        const ttlMs = parseDuration(options.get('ttl') ?? '10s', 'ttl')
        return { kind: 'openSession', nonce: hex, secret: hex, ttlMs, client: first, local: false }
      }
      case 'acquire': {
        const wait = options.get('wait') ?? '0ms'
        const locks = plain.slice(1).filter((word) => word !== 'persistent' && word !== 'portable')
        return {
          kind: 'acquire',
          session,
          request: request(),
          ack,
          locks: locks.map(lockOf),
          waitMs: wait === 'forever' ? -1 : parseDuration(wait, 'wait'),
          lockDelayMs: parseDuration(options.get('delay') ?? '0ms', 'delay'),
          persistent: flag('persistent'),
          portable: flag('portable'),
          ...(flag('persistent') || flag('portable') ? { secret: 'ab'.repeat(16) } : {}),
          data: new Uint8Array(0),
        }
      }
      case 'renew': {
        const seen = number('seen')
        const acked = options.has('ack') ? { ack } : {}
        return { kind: 'renew', session, ...(seen === undefined ? {} : { seen }), ...acked }
      }
      case 'release':
        return { kind: 'release', session, request: request(), ack, hold: Number(plain[1]) as never }
      case 'cancel':
        return { kind: 'cancel', session, request: request(), ack, target: Number(plain[1]) }
      case 'adopt': {
        const secret = options.get('secret') ?? 'ab'.repeat(16)
        const newSecret = 'cd'.repeat(16)
        return { kind: 'adopt', session, request: request(), ack, hold: Number(plain[1]) as never, secret, newSecret }
      }
      case 'steal':
        return { kind: 'steal', hold: Number(first) as never, actor: 'operator', reason: 'stuck' }
      case 'close':
        return { kind: 'closeSession', session, by: (options.get('by') ?? 'owner') as 'owner', reason: '' }
      case 'resize':
        return { kind: 'configure', permits: { name: first, size: Number(plain[1]) } }
      case 'put':
      case 'delete':
        return this.write(kind, plain, options, ack)
      default:
        throw new Error(`not a directive: ${words.join(' ')}`)
    }
  }

  private write(
    kind: 'put' | 'delete',
    plain: string[],
    options: Map<string, string>,
    ack: { lowest: number; also: number[] },
  ): Command {
    const words = [...plain]
    const session = this.names.get(words[0] as string)
    if (session !== undefined) words.shift()
    const numbered = session === undefined ? {} : { session, request: this.bench.next(session), ack }
    const version = options.get('version')
    const fence = options.get('fence')?.split(':')
    const conditions = {
      ...(version === undefined ? {} : { ifVersion: version === '0' ? 0n : (1n << 48n) + BigInt(version) }),
      ...(fence === undefined ? {} : { fence: { hold: Number(fence[0]) as never, lock: fence[1] as string } }),
    }
    const key = words[0] as string
    if (kind === 'delete') return { kind, key, ...numbered, ...conditions }
    return { kind, key, value: Uint8Array.from(words[1] ?? '', (c) => c.charCodeAt(0)), ...numbered, ...conditions }
  }

  private describe(applied: Applied, commands: readonly Command[], lines: string[]): void {
    applied.results.forEach((result, i) => {
      const command = commands[i] as Command
      if (command.kind === 'openSession' && result.kind === 'opened') this.names.set(command.client, result.session)
      lines.push(this.result(result))
    })
    for (const { session, change, ended } of applied.pushes) {
      const to = `  -> ${this.nameOf(session)}:`
      if (ended !== undefined) lines.push(`${to} session ended: ${ended}`)
      else if (change?.kind === 'granted')
        lines.push(`${to} #${change.number} request ${change.request} ${this.grant(change.grant)}`)
      else if (change?.kind === 'refused')
        lines.push(`${to} #${change.number} request ${change.request} ${change.refused.code}`)
      else if (change !== undefined) lines.push(`${to} #${change.number} hold ${change.hold} ended: ${change.reason}`)
    }
    for (const event of applied.events) {
      if (event.kind === 'freed')
        lines.push(`  freed ${event.hold} ${event.locks.map((lock) => lock.name).join(' ')}: ${event.reason}`)
      if (event.kind === 'unqueued')
        lines.push(`  unqueued ${this.nameOf(event.session)}/${event.request}: ${event.reason}`)
      if (event.kind === 'held') lines.push(`  held ${event.grant.hold} by ${this.nameOf(event.session)}`)
    }
  }

  private grant(grant: Grant): string {
    if (grant.secret !== undefined) this.secrets.set(grant.hold, grant.secret)
    return `granted ${grant.hold} ${grant.locks.map(heldText).join(' ')}`
  }

  private result(result: Result): string {
    switch (result.kind) {
      case 'opened':
        return `opened ${result.session}`
      case 'granted':
        return this.grant(result.grant)
      case 'queued':
        return `queued ${result.position}`
      case 'ended':
        return `ended ${result.hold}: ${result.reason}`
      case 'cancelled':
        return `cancelled, was ${result.was}`
      case 'put':
        return `put, version ${result.version - (1n << 48n)}`
      case 'renewed':
        return `renewed${result.changes.map((change) => ` #${change.number} ${change.kind}`).join('')}`
      case 'refused':
        return `${result.code}: ${result.message}`
      default:
        return result.kind
    }
  }
}

function lockOf(word: string): LockRequest {
  const [name, mode] = word.split(':')
  const modes: Mode = mode === undefined ? 'exclusive' : mode === 'shared' ? 'shared' : { permits: Number(mode) }
  return { name: name as string, mode: modes }
}

function heldText(held: HeldLock): string {
  return `${held.name}=${held.token}${held.slot === undefined ? '' : `/slot ${held.slot}`}`
}

export type { Millis }
