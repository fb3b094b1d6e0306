import { InvalidError } from '@leasehold/core'
import type { MemberInfo } from '@leasehold/replica'
import type { Dialer } from './dialer.js'
import { requestPeer } from './peer-request.js'

const REQUEST_TIMEOUT_MS = 2000

/** The parameters with which a cluster was bootstrapped: equal for all founders, and for members that join later. */
export interface BootstrapRecord {
  readonly id: string
  readonly epoch: number
  readonly founders: readonly MemberInfo[]
  /** The counter of the service starts above it; absent in records of older versions: 0. */
  readonly floor?: number
  /** Feature level at which the cluster was bootstrapped; absent in records of older versions: 1. */
  readonly level?: number
}

/** The status of a member, as it reports it to members that bootstrap. */
export interface BootstrapStatus {
  readonly name: string
  readonly node: number
  readonly url: string
  readonly list: string
  readonly epoch: number
  /** The highest feature level that it knows; absent in older versions: 1. */
  readonly level?: number
  /** The id of this run of its process; absent in older versions. */
  readonly instance?: string
  /** Present for a member of a cluster. */
  readonly founding?: BootstrapRecord
  /** The member lost its data: no cluster may be bootstrapped with it. */
  readonly lost?: true
  /** Node numbers of the current members, as far as it knows. */
  readonly members?: readonly number[]
}

/** Requests the status of the member at `address`. @throws UnavailableError, InvalidError */
export async function fetchBootstrapStatus(dialer: Dialer, address: string): Promise<BootstrapStatus> {
  return decode(await requestPeer(dialer, address, encodeBootstrapStatus({}), REQUEST_TIMEOUT_MS), address)
}

export function encodeBootstrapStatus(status: Partial<BootstrapStatus>): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(status))
}

function decode(bytes: Uint8Array, address: string): BootstrapStatus {
  try {
    const status = JSON.parse(new TextDecoder().decode(bytes)) as BootstrapStatus
    if (typeof status.name !== 'string' || !Number.isSafeInteger(status.node) || typeof status.list !== 'string')
      throw new Error('missing fields')
    return status
  } catch (cause) {
    throw new InvalidError(`the process that listens on ${address} is not a member`, { cause })
  }
}
