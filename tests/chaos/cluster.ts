import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../services/ports.js'
import { Links } from './links.js'
import { ClusterMember, type UnexpectedEnd } from './member.js'
import { memberName } from './plan.js'

const ASK_TIMEOUT_MS = 3_000
const CHANGE_TIMEOUT_MS = 12_000
const LOOK_EVERY_MS = 50

/** What a member says of itself and the others. */
export interface ClusterAnswer {
  readonly member: string
  readonly role: 'leader' | 'follower' | 'candidate' | 'learner' | 'stopped'
  readonly leader: string
  readonly term: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly members?: readonly { name: string; role: string; matchIndex?: number }[]
}

/** Real members on this machine, and the network between them. Ends only what it started. */
export class ChaosCluster {
  readonly #peerAddresses: ReadonlyMap<string, string>

  private constructor(
    readonly members: readonly ClusterMember[],
    readonly links: Links,
    peerAddresses: ReadonlyMap<string, string>,
  ) {
    this.#peerAddresses = peerAddresses
  }

  /** Starts `size` members with folders below `folder`; resolves when one leads. */
  static async start(
    folder: string,
    size: number,
    onUnexpectedEnd: UnexpectedEnd,
    nodeOptions: readonly string[] = [],
  ): Promise<ChaosCluster> {
    const members: ClusterMember[] = []
    const links = new Links((node) => members.find((member) => member.node === node)?.name)
    const addresses = new Map<string, string>()
    const list = (): string => [...addresses].map(([name, address]) => `${name}=${address}`).join(',')
    const ports = await freePorts(size * 2)
    for (let i = 0; i < size; i++) {
      const name = memberName(i)
      const place = {
        name,
        folder: join(folder, name),
        port: ports[i * 2] as number,
        peerPort: ports[i * 2 + 1] as number,
        nodeOptions,
      }
      mkdirSync(place.folder, { recursive: true })
      members.push(new ClusterMember(place, list, onUnexpectedEnd))
      addresses.set(name, `127.0.0.1:${await links.open(name, place.peerPort)}`)
    }
    const cluster = new ChaosCluster(members, links, addresses)
    try {
      for (const member of members) member.start()
      await cluster.leader(60_000)
    } catch (error) {
      await cluster.close()
      throw error
    }
    return cluster
  }

  /** All members' URLs, as a client takes them. */
  get url(): string {
    return this.members.map(({ url }) => url).join(',')
  }

  memberNamed(name: string): ClusterMember {
    const member = this.members.find((one) => one.name === name)
    if (member === undefined) throw new Error(`no member ${name}`)
    return member
  }

  /** What a member says; undefined when it does not answer. */
  async ask(member: ClusterMember): Promise<ClusterAnswer | undefined> {
    if (!member.running || member.stopped) return undefined
    try {
      const response = await fetch(`${member.url}/v1/cluster`, { signal: AbortSignal.timeout(ASK_TIMEOUT_MS) })
      return response.ok ? ((await response.json()) as ClusterAnswer) : undefined
    } catch {
      return undefined
    }
  }

  /** The leader of the highest term, now. */
  async leaderNow(): Promise<ClusterMember | undefined> {
    const answers = await Promise.all(this.members.map(async (member) => ({ member, answer: await this.ask(member) })))
    let found: { member: ClusterMember; term: number } | undefined
    for (const { member, answer } of answers) {
      if (answer?.role === 'leader' && answer.term > (found?.term ?? -1)) found = { member, term: answer.term }
    }
    return found?.member
  }

  /** @throws Error when there is no leader in time */
  async leader(limitMs: number): Promise<ClusterMember> {
    const end = performance.now() + limitMs
    for (;;) {
      const leader = await this.leaderNow()
      if (leader !== undefined) return leader
      if (performance.now() > end) throw new Error(`no leader after ${limitMs} ms`)
      await sleep(LOOK_EVERY_MS)
    }
  }

  /** An operator's change of the membership, on the leader. Resolves with its refusal, or undefined. */
  async change(kind: 'add' | 'promote' | 'remove' | 'transfer', name: string): Promise<string | undefined> {
    const leader = await this.leaderNow()
    if (leader === undefined) return 'no leader'
    const body = kind === 'add' ? { name, peer: this.#peerAddresses.get(name) } : { name }
    try {
      const response = await fetch(`${leader.url}/v1/cluster/${kind}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(CHANGE_TIMEOUT_MS),
      })
      const answer = (await response.json()) as { code?: string; detail?: string }
      return response.ok ? undefined : `${answer.code}: ${answer.detail}`
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  async close(): Promise<void> {
    for (const member of this.members) {
      member.resume()
      member.killNow()
    }
    await Promise.all(this.members.map((member) => member.kill()))
    this.links.close()
  }
}
