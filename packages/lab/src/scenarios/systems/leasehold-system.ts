import { createLocksOn, type Hold, type Locks, ProtocolEngine } from '@leasehold/client'
import { AcquireTimeoutError, BusyError, InvalidError, LeaseholdError } from '@leasehold/core'
import { parseFencingHeader } from '@leasehold/fence/http'
import { Cluster } from '../../cluster/index.js'
import { clientPlatform, type Process, StreamConnector, type World } from '../../world/index.js'
import type { HeldBy, LockClient, LockSystem } from '../system.js'
import { type Drop, DroppingConnector } from './cluster/message-loss.js'
import { peekRemaining } from './peek-remaining.js'

/** `{ "kind": "leasehold", "members": 3, "ttl": 10, "margin": 1 }` */
interface Spec {
  readonly members?: number
  /** Seconds. */
  readonly ttl?: number
  readonly margin?: number
}

/** The production service (members on simulated disks) with the production client. */
export function leasehold(world: World, spec: Spec): LockSystem {
  const names = Array.from({ length: spec.members ?? 3 }, (_, i) => `N${i + 1}`)
  const cluster = new Cluster(world, { names })
  cluster.start()
  const { ttl = 10, margin = 1 } = spec
  const drops = new Map<string, Drop[]>()
  const dropsOf = (name: string): Drop[] => {
    const known = drops.get(name) ?? []
    drops.set(name, known)
    return known
  }
  const locksOf = (process: Process, name: string): Locks => {
    const platform = clientPlatform(process)
    const engine = new ProtocolEngine({
      urls: cluster.urls,
      connector: new DroppingConnector(new StreamConnector(process), dropsOf(name)),
      platform,
      clientName: name,
    })
    return createLocksOn(engine, { clientName: name, ttl: ttl * 1000, margin: margin * 1000 }, { platform })
  }
  const askers = new Map<Process, Locks>()
  return {
    members: names,
    overlapViolates: false,
    cluster,
    ready: () => cluster.leader !== undefined,
    client: (process) => new LeaseholdClient(locksOf(process, process.name), process),
    resolve: (who) => (who === 'leader' ? (cluster.leader?.name ?? 'N1') : who),
    start: (name) => cluster.member(name).start(),
    member: (name) => cluster.members.get(name),
    loses: (client, message, lost) => {
      const known = dropsOf(client)
      known.splice(0, known.length, ...known.filter((drop) => drop.message !== message))
      if (lost) known.push({ message })
    },
    verify: async (process, header) => {
      let locks = askers.get(process)
      if (locks === undefined) {
        locks = locksOf(process, `${process.name} (asks)`)
        askers.set(process, locks)
      }
      const [asked] = parseFencingHeader(header)
      if (asked === undefined) return false
      const { held } = await locks.query({ name: asked.name })
      return held.some((row) => row.locks.some((lock) => lock.name === asked.name && lock.token === asked.token))
    },
    violations: () =>
      cluster.checks.violations.found.map(({ invariant, text, atMs }) => ({
        rule: 'invariant' as const,
        text: `${invariant}: ${text}`,
        atUs: Math.round(atMs * 1000),
      })),
  }
}

class LeaseholdClient implements LockClient {
  readonly #locks: Locks
  readonly #process: Process

  constructor(locks: Locks, process: Process) {
    this.#locks = locks
    this.#process = process
  }

  async acquire(lock: string, options: Readonly<Record<string, unknown>>): Promise<HeldBy | undefined> {
    try {
      return this.#held(await this.#locks.acquire(lock, options))
    } catch (error) {
      if (error instanceof BusyError || error instanceof AcquireTimeoutError) return undefined
      // Its own mistake.
      if (!(error instanceof LeaseholdError) || error instanceof InvalidError) throw error
      const { name: who, world } = this.#process
      world.timeline.add({ kind: 'client', who, text: `is told: ${error.message}`, lock })
      return undefined
    }
  }

  #held(hold: Hold): HeldBy {
    let released = false
    const { timeline } = this.#process.world
    const say = (text: string) => timeline.add({ kind: 'client', who: this.#process.name, text, lock: hold.name })
    hold.on('warning', (warning) => say(`is warned: ${warning.message}`))
    void hold.lost.then((error) => {
      if (error !== null) say(`is told that its hold is lost (${error.reason})`)
    })
    const remaining = peekRemaining(this.#process, hold)
    return {
      token: hold.token,
      guardable: hold,
      isValid: () => !released && remaining() > 0,
      remainingMs: () => (released ? 0 : remaining()),
      release: async () => {
        released = true
        try {
          await hold.release()
        } catch (error) {
          say(`its release was not confirmed: ${(error as LeaseholdError).message}`)
        }
      },
    }
  }
}
