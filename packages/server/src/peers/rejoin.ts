import { AccessError, InvalidError, LeaseholdError } from '@leasehold/core'
import type { MemberInfo } from '@leasehold/replica'
import { fetchBootstrapStatus } from './bootstrap-status.js'
import { ClusterAdmin, type ClusterMember } from './cluster-admin.js'
import type { Dialer } from './dialer.js'
import { requestPeer } from './peer-request.js'

/*
 * Rejoin: how a member that lost its data returns without an operator. It is empty, so it has a new node number: without
 * its log it must not vote under its old one. It repeatedly asks the leader to replace the member of its name. Each time,
 * the leader takes the next step: remove the old node number, add the new one as a learner, promote it when it has caught
 * up. Each step is an ordinary membership change that a majority of the others commits, so no data can be lost, and the
 * procedure can stop and resume at any step.
 */

/** Long enough for one membership change. */
const REQUEST_TIMEOUT_MS = 12_000
const PROMOTE_INTERVAL_MS = 500
/** A learner that has not caught up within this time stays one, until an operator promotes it. */
const PROMOTE_LIMIT_MS = 30 * 60_000

/** The member that handles rejoin requests. */
export interface RejoinTarget extends ClusterMember {
  readonly status: { readonly role: string; readonly leader: string }
}

/** The rejoining member; `empty`: it has no data, and so may replace the member of its name. */
export interface RejoinRequest extends MemberInfo {
  readonly empty: boolean
}

type Answer = { readonly done: true } | { readonly leader: string } | { readonly waiting: string }

/** Decodes a rejoin request; undefined for any other request. */
export function decodeRejoinRequest(bytes: Uint8Array): RejoinRequest | undefined {
  let request: unknown
  try {
    request = JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
  const { repair } = (request ?? {}) as { repair?: Partial<RejoinRequest> }
  if (repair === undefined) return undefined
  const { node, name, peer, url, empty } = repair
  const isComplete = Number.isSafeInteger(node) && [name, peer, url].every((text) => typeof text === 'string')
  return isComplete && typeof empty === 'boolean' ? (repair as RejoinRequest) : undefined
}

/** Handles rejoin requests: on the leader, by the next membership change; elsewhere, by the address of the leader. */
export class RejoinHandler {
  readonly #member: RejoinTarget
  readonly #dialer: Dialer
  readonly #admin: ClusterAdmin
  readonly #accepts: boolean
  #busy = false

  /** `accepts`: without it, only a member that the cluster knows by its node number makes progress. */
  constructor(member: RejoinTarget, dialer: Dialer, accepts: boolean) {
    this.#accepts = accepts
    this.#member = member
    this.#dialer = dialer
    this.#admin = new ClusterAdmin(member, dialer)
  }

  async answer(request: RejoinRequest): Promise<Uint8Array> {
    return new TextEncoder().encode(JSON.stringify(await this.#handle(request)))
  }

  async #handle(request: RejoinRequest): Promise<Answer> {
    const { role, leader } = this.#member.status
    if (role !== 'leader') {
      const address = this.#member.members.find(({ name }) => name === leader)?.peer ?? ''
      return address === '' ? { waiting: 'the cluster has no leader' } : { leader: address }
    }
    if (this.#busy) return { waiting: 'another membership change is in progress' }
    this.#busy = true
    try {
      return await this.#takeStep(request)
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      return { waiting: error.message }
    } finally {
      this.#busy = false
    }
  }

  async #takeStep({ node, name, peer, empty }: RejoinRequest): Promise<Answer> {
    const known = this.#member.members.find((one) => one.node === node)
    if (known?.role === 'voter') return { done: true }
    if (known !== undefined) return await this.#change(this.#admin.promote(name), 'it is catching up')
    if (!empty) throw new InvalidError(`${name} (node ${node}) is no longer a member`)
    if (!this.#accepts) {
      throw new AccessError(
        `the leader ${this.#member.status.leader} does not accept repairs: restart it with --accept-repair, or use cluster remove and cluster add`,
        { code: 'forbidden' },
      )
    }
    // The requester must listen at its address, so that a mistaken second process cannot replace a running member.
    const status = await fetchBootstrapStatus(this.#dialer, peer)
    if (status.node !== node || status.name !== name) {
      throw new InvalidError(`the member at ${peer} is ${status.name} (node ${status.node})`)
    }
    const old = this.#member.members.find((one) => one.name === name)
    if (old === undefined) return await this.#change(this.#admin.add(name, peer), 'it was added')
    if (old.peer !== peer && (await this.#isRunning(old))) {
      throw new InvalidError(`a member ${name} runs at ${old.peer}: its place is taken`)
    }
    return await this.#change(this.#admin.remove(name), 'its old node number was removed')
  }

  async #isRunning(old: MemberInfo): Promise<boolean> {
    try {
      return (await fetchBootstrapStatus(this.#dialer, old.peer)).node === old.node
    } catch {
      return false
    }
  }

  async #change(change: ReturnType<ClusterAdmin['promote']>, progress: string): Promise<Answer> {
    const result = await change
    return { waiting: result.kind === 'changed' ? progress : result.message }
  }
}

/** Requests the next step. Returns its progress, for the log. `addresses`: peer addresses of members of the cluster. */
export async function requestRejoin(dialer: Dialer, self: MemberInfo, addresses: readonly string[]): Promise<string> {
  const answer = await request(dialer, { ...self, empty: true }, addresses)
  if ('done' in answer) return 'it is a voter'
  return `taking the place of ${self.name}: ${'leader' in answer ? 'looking for the leader' : answer.waiting}`
}

/** Resolves when the member is a voter. Rejects when `pause` rejects, or after {@link PROMOTE_LIMIT_MS}. */
export async function becomeVoter(
  dialer: Dialer,
  self: MemberInfo,
  addresses: readonly string[],
  pause: (ms: number) => Promise<void>,
): Promise<void> {
  const end = performance.now() + PROMOTE_LIMIT_MS
  while (!('done' in (await request(dialer, { ...self, empty: false }, addresses)))) {
    if (performance.now() > end) {
      throw new InvalidError(`${self.name} has not caught up within ${PROMOTE_LIMIT_MS / 60_000} minutes`, {
        hint: `it stays a learner; when it has caught up: leasehold cluster promote ${self.name}`,
      })
    }
    await pause(PROMOTE_INTERVAL_MS)
  }
}

/** Sends one request to the first member that answers, and then to the leader that this member names. */
async function request(dialer: Dialer, self: RejoinRequest, addresses: readonly string[]): Promise<Answer> {
  let failure = 'no member answers'
  for (const address of addresses) {
    try {
      const answer = await requestAt(dialer, address, self)
      return 'leader' in answer ? await requestAt(dialer, answer.leader, self) : answer
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      failure = error.message
    }
  }
  return { waiting: failure }
}

/** @throws UnavailableError; InvalidError for an invalid answer */
async function requestAt(dialer: Dialer, address: string, self: RejoinRequest): Promise<Answer> {
  const request = new TextEncoder().encode(JSON.stringify({ repair: self }))
  const bytes = await requestPeer(dialer, address, request, REQUEST_TIMEOUT_MS)
  try {
    const answer = JSON.parse(new TextDecoder().decode(bytes)) as Answer
    if ('done' in answer || 'leader' in answer || 'waiting' in answer) return answer
    throw new TypeError('no known answer')
  } catch (cause) {
    throw new InvalidError(`the member at ${address} does not support this request: does it run an older version?`, {
      cause,
    })
  }
}
