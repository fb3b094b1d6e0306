import { Reader, Writer } from '@leasehold/core'
import type { Configuration, NodeId } from '@leasehold/raft'

/** A member as the others know it. */
export interface MemberInfo {
  readonly node: NodeId
  readonly name: string
  /** Where it listens to other members, `host:port`; '' for a service of one. */
  readonly peer: string
  /** Where it takes clients; '' when it has not said. */
  readonly url: string
}

/** What a snapshot says about the cluster at its index. */
export interface ClusterMeta {
  /** 32 hex digits. */
  readonly cluster: string
  readonly configuration: Configuration
  readonly members: readonly MemberInfo[]
}

const LISTS = ['voters', 'votersOutgoing', 'learners', 'learnersNext'] as const

export function encodeMember(member: MemberInfo): Uint8Array {
  const writer = new Writer()
  writeMember(writer, member)
  return writer.take()
}

/** @throws CodecError */
export function decodeMember(bytes: Uint8Array): MemberInfo {
  const reader = new Reader(bytes)
  const member = readMember(reader)
  reader.finish()
  return member
}

export function encodeMeta(meta: ClusterMeta): Uint8Array {
  const writer = new Writer()
  writer.hex128(meta.cluster)
  for (const list of LISTS) {
    writer.varuint(meta.configuration[list].length)
    for (const node of meta.configuration[list]) writer.varuint(node)
  }
  writer.bool(meta.configuration.autoLeave)
  writer.varuint(meta.members.length)
  for (const member of meta.members) writeMember(writer, member)
  return writer.take()
}

/** @throws CodecError */
export function decodeMeta(bytes: Uint8Array): ClusterMeta {
  const reader = new Reader(bytes)
  const cluster = reader.hex128()
  const [voters, votersOutgoing, learners, learnersNext] = LISTS.map(() =>
    Array.from({ length: reader.count() }, () => reader.varuint()),
  ) as [NodeId[], NodeId[], NodeId[], NodeId[]]
  const autoLeave = reader.bool()
  const members = Array.from({ length: reader.count(4) }, () => readMember(reader))
  reader.finish()
  return { cluster, configuration: { voters, votersOutgoing, learners, learnersNext, autoLeave }, members }
}

function writeMember(writer: Writer, member: MemberInfo): void {
  writer.varuint(member.node)
  writer.string(member.name)
  writer.string(member.peer)
  writer.string(member.url)
}

function readMember(reader: Reader): MemberInfo {
  return { node: reader.varuint(), name: reader.string(), peer: reader.string(), url: reader.string() }
}
