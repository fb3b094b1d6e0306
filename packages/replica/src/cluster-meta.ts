import { Reader, Writer } from '@leasehold/core'
import type { Configuration, NodeId } from '@leasehold/raft'

/** A member, as recorded in the cluster's configuration. */
export interface MemberInfo {
  readonly node: NodeId
  readonly name: string
  /** Address for other members, `host:port`; '' for a service with a single member. */
  readonly peer: string
  /** URL for clients; '' when the member has announced none. */
  readonly url: string
}

/** The cluster part of a snapshot: id, configuration and members at the snapshot's index. */
export interface ClusterMeta {
  /** 32 hex digits. */
  readonly cluster: string
  readonly configuration: Configuration
  readonly members: readonly MemberInfo[]
}

const LISTS = ['voters', 'votersOutgoing', 'learners', 'learnersNext'] as const

/** Encodes the members that a configuration entry adds or updates. */
export function encodeMembers(members: readonly MemberInfo[]): Uint8Array {
  const writer = new Writer()
  writer.varuint(members.length)
  for (const member of members) writeMember(writer, member)
  return writer.take()
}

/** @throws CodecError */
export function decodeMembers(bytes: Uint8Array): MemberInfo[] {
  if (bytes.length === 0) return []
  const reader = new Reader(bytes)
  const members = Array.from({ length: reader.count(4) }, () => readMember(reader))
  reader.finish()
  return members
}

/** Returns the members after a configuration entry: `changed` replaces or adds members, removed ones are dropped. */
export function changedMembers(
  members: readonly MemberInfo[],
  changed: readonly MemberInfo[],
  configuration: Configuration,
): MemberInfo[] {
  const present = new Set(LISTS.flatMap((list) => configuration[list]))
  const all = new Map([...members, ...changed].map((member) => [member.node, member]))
  return [...all.values()].filter((member) => present.has(member.node)).sort((a, b) => a.node - b.node)
}

export function encodeMeta(meta: ClusterMeta): Uint8Array {
  const writer = new Writer()
  writer.hex128(meta.cluster)
  writeConfiguration(writer, meta.configuration)
  writer.varuint(meta.members.length)
  for (const member of meta.members) writeMember(writer, member)
  return writer.take()
}

/** @throws CodecError */
export function decodeMeta(bytes: Uint8Array): ClusterMeta {
  const reader = new Reader(bytes)
  const cluster = reader.hex128()
  const configuration = readConfiguration(reader)
  const members = Array.from({ length: reader.count(4) }, () => readMember(reader))
  reader.finish()
  return { cluster, configuration, members }
}

export function writeConfiguration(writer: Writer, configuration: Configuration): void {
  for (const list of LISTS) {
    writer.varuint(configuration[list].length)
    for (const node of configuration[list]) writer.varuint(node)
  }
  writer.bool(configuration.autoLeave)
}

/** @throws CodecError */
export function readConfiguration(reader: Reader): Configuration {
  const [voters, votersOutgoing, learners, learnersNext] = LISTS.map(() =>
    Array.from({ length: reader.count() }, () => reader.varuint()),
  ) as [NodeId[], NodeId[], NodeId[], NodeId[]]
  return { voters, votersOutgoing, learners, learnersNext, autoLeave: reader.bool() }
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
