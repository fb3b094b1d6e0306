import { type BootstrapRecord, encodeBootstrapStatus } from './bootstrap-status.js'
import { canonicalList, type ClusterList } from './cluster-list.js'
import { decodeRejoinRequest, RejoinHandler, type RejoinTarget } from './rejoin.js'
import type { TcpTransport } from './transport.js'

/** A running member, as it introduces itself to members that bootstrap or rejoin. */
export interface RunningMember {
  readonly name: string
  readonly url: string
  readonly node: number
  readonly founding: BootstrapRecord
  readonly list: ClusterList
  /** Members that lost their data may take their place again. */
  readonly acceptsRepair: boolean
}

/** Answers the requests of members that bootstrap or rejoin, for as long as this member runs. */
export function servePeerRequests(
  peers: TcpTransport,
  { name, url, node, founding, list, acceptsRepair }: RunningMember,
  member: RejoinTarget,
): void {
  const rejoin = new RejoinHandler(member, peers.dialer, acceptsRepair)
  peers.onRequest(async (bytes) => {
    const request = decodeRejoinRequest(bytes)
    if (request !== undefined) return await rejoin.answer(request)
    const members = member.members.map((one) => one.node)
    const { epoch } = founding
    const { instance } = peers
    return encodeBootstrapStatus({ name, node, url, list: canonicalList(list), epoch, instance, founding, members })
  })
}
