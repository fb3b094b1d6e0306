import { InvalidError } from '@leasehold/core'
import type { MemberInfo } from '@leasehold/replica'
import type { Dialer } from './dialer.js'
import { requestPeer } from './peer-request.js'

const ASK_TIMEOUT_MS = 2000

/** What a cluster was founded with: the same for all founders, and for everybody who joins later. */
export interface BootstrapRecord {
  readonly id: string
  readonly epoch: number
  readonly founders: readonly MemberInfo[]
  /** The service's counter starts above it; absent in records of older versions: 0. */
  readonly floor?: number
  /** Feature level that the service is founded with; absent in records of older versions: 1. */
  readonly level?: number
}

/** How a member stands, as it tells others that begin. */
export interface BootstrapStatus {
  readonly name: string
  readonly node: number
  readonly url: string
  readonly list: string
  readonly epoch: number
  /** The highest feature level that it knows; older versions leave it out: 1. */
  readonly level?: number
  /** Which run of the process it is; older versions do not say. */
  readonly instance?: string
  /** Of a member of a cluster. */
  readonly founding?: BootstrapRecord
  /** It had data that was lost: no cluster may begin with it. */
  readonly lost?: true
  /** Node numbers of the members that it knows now. */
  readonly members?: readonly number[]
}

/** Asks the member at `address` how it stands. @throws UnavailableError */
export async function fetchBootstrapStatus(dialer: Dialer, address: string): Promise<BootstrapStatus> {
  return decode(await requestPeer(dialer, address, encodeBootstrapStatus({}), ASK_TIMEOUT_MS), address)
}

export function encodeBootstrapStatus(standing: Partial<BootstrapStatus>): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(standing))
}

function decode(bytes: Uint8Array, address: string): BootstrapStatus {
  try {
    const standing = JSON.parse(new TextDecoder().decode(bytes)) as BootstrapStatus
    if (typeof standing.name !== 'string' || !Number.isSafeInteger(standing.node) || typeof standing.list !== 'string')
      throw new Error('fields')
    return standing
  } catch (cause) {
    throw new InvalidError(`what listens on ${address} is no member`, { cause })
  }
}
