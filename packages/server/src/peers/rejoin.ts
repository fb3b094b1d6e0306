import { InvalidError, LeaseholdError } from '@leasehold/core'
import type { MemberInfo } from '@leasehold/replica'
import { type ClusterMember, ClusterAdmin } from './cluster-admin.js'
import type { Dialer } from './dialer.js'
import { fetchBootstrapStatus } from './bootstrap-status.js'
import { requestPeer } from './peer-request.js'

/*
 * How a member that lost its data comes back by itself (the repair). It is empty, so it has a new node number: a member
 * without its memory must not vote under its old one. It asks whoever leads to put it in the place of the member of its
 * name, again and again; each time the leader takes the one step that is due: remove the old number, add the new one as a
 * learner, make it a voter when it has caught up. All of it are ordinary changes of the membership, decided by a majority
 * of the others, so nothing can be lost by it, and it may stop and go on at any step.
 */

/** Covers one change of the membership. */
const ASK_TIMEOUT_MS = 12_000
const PROMOTE_EVERY_MS = 500
/** A learner that has not caught up in this time stays one: an operator promotes it. */
const PROMOTE_LIMIT_MS = 30 * 60_000

export interface RejoinTarget extends ClusterMember {
  readonly status: { readonly role: string; readonly leader: string }
}

/** Who asks; `empty`: it has no data, and so may be put in the place of the member of its name. */
export interface RejoinRequest extends MemberInfo {
  readonly empty: boolean
}

type Answer = { readonly done: true } | { readonly leader: string } | { readonly waiting: string }

/** What a member that comes back asks for; undefined for another question. */
export function decodeRejoinRequest(bytes: Uint8Array): RejoinRequest | undefined {
  let question: unknown
  try {
    question = JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
  const { repair } = (question ?? {}) as { repair?: Partial<RejoinRequest> }
  if (repair === undefined) return undefined
  const { node, name, peer, url, empty } = repair
  const isWhole = Number.isSafeInteger(node) && [name, peer, url].every((text) => typeof text === 'string')
  return isWhole && typeof empty === 'boolean' ? (repair as RejoinRequest) : undefined
}

/** Answers members that come back. */
export class RejoinHandler {
  readonly #admin: ClusterAdmin
  #busy = false

  constructor(
    private readonly member: RejoinTarget,
    private readonly dialer: Dialer,
  ) {
    this.#admin = new ClusterAdmin(member, dialer)
  }

  async answer(asking: RejoinRequest): Promise<Uint8Array> {
    return new TextEncoder().encode(JSON.stringify(await this.#step(asking)))
  }

  async #step(asking: RejoinRequest): Promise<Answer> {
    const { role, leader } = this.member.status
    if (role !== 'leader') {
      const address = this.member.members.find(({ name }) => name === leader)?.peer ?? ''
      return address === '' ? { waiting: 'the cluster has no leader now' } : { leader: address }
    }
    if (this.#busy) return { waiting: 'another change of the membership is under way' }
    this.#busy = true
    try {
      return await this.#due(asking)
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      return { waiting: error.message }
    } finally {
      this.#busy = false
    }
  }

  async #due({ node, name, peer, empty }: RejoinRequest): Promise<Answer> {
    const known = this.member.members.find((one) => one.node === node)
    if (known?.role === 'voter') return { done: true }
    if (known !== undefined) return await this.#change(this.#admin.promote(name), 'it gets what the others have')
    if (!empty) throw new InvalidError(`${name} (node ${node}) is no member any more`)
    // Who asks must be the one that listens where it says: then nobody can be put aside by a mistaken second start.
    const standing = await fetchBootstrapStatus(this.dialer, peer)
    if (standing.node !== node || standing.name !== name) {
      throw new InvalidError(`the member at ${peer} is ${standing.name} (node ${standing.node})`)
    }
    const old = this.member.members.find((one) => one.name === name)
    if (old === undefined) return await this.#change(this.#admin.add(name, peer), 'it was added')
    if (old.peer !== peer && (await this.#lives(old))) {
      throw new InvalidError(`a member ${name} lives at ${old.peer}: its place is taken`)
    }
    return await this.#change(this.#admin.remove(name), 'its old number was removed')
  }

  async #lives(old: MemberInfo): Promise<boolean> {
    try {
      return (await fetchBootstrapStatus(this.dialer, old.peer)).node === old.node
    } catch {
      return false
    }
  }

  async #change(change: ReturnType<ClusterAdmin['promote']>, text: string): Promise<Answer> {
    const result = await change
    return { waiting: result.kind === 'changed' ? text : result.message }
  }
}

/** Asks for the next step; what it says is for the log. `places`: where members of the cluster listen. */
export async function requestRejoin(dialer: Dialer, self: MemberInfo, places: readonly string[]): Promise<string> {
  const answer = await ask(dialer, { ...self, empty: true }, places)
  if ('done' in answer) return 'it is a voter'
  return `taking the place of ${self.name}: ${'leader' in answer ? 'looking for the leader' : answer.waiting}`
}

/** Resolves when the member is a voter. Rejects when `signal` aborts, or after {@link PROMOTE_LIMIT_MS}. */
export async function becomeVoter(
  dialer: Dialer,
  self: MemberInfo,
  places: readonly string[],
  pause: (ms: number) => Promise<void>,
): Promise<void> {
  const end = performance.now() + PROMOTE_LIMIT_MS
  while (!('done' in (await ask(dialer, { ...self, empty: false }, places)))) {
    if (performance.now() > end) {
      throw new InvalidError(`${self.name} has not caught up within ${PROMOTE_LIMIT_MS / 60_000} minutes`, {
        hint: `it is a learner; when it has caught up: leasehold cluster promote ${self.name}`,
      })
    }
    await pause(PROMOTE_EVERY_MS)
  }
}

/** One question, to the first who answers; the leader is followed to once. */
async function ask(dialer: Dialer, self: RejoinRequest, places: readonly string[]): Promise<Answer> {
  let failure = 'no member answers'
  for (const place of places) {
    try {
      const answer = await askAt(dialer, place, self)
      return 'leader' in answer ? await askAt(dialer, answer.leader, self) : answer
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      failure = error.message
    }
  }
  return { waiting: failure }
}

/** @throws UnavailableError, InvalidError for an answer that is none */
async function askAt(dialer: Dialer, place: string, self: RejoinRequest): Promise<Answer> {
  const question = new TextEncoder().encode(JSON.stringify({ repair: self }))
  const bytes = await requestPeer(dialer, place, question, ASK_TIMEOUT_MS)
  try {
    const answer = JSON.parse(new TextDecoder().decode(bytes)) as Answer
    if ('done' in answer || 'leader' in answer || 'waiting' in answer) return answer
    throw new TypeError('no such answer')
  } catch (cause) {
    throw new InvalidError(`the member at ${place} does not know this question: is it of an older version?`, { cause })
  }
}
