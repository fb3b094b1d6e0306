import { setTimeout as sleep } from 'node:timers/promises'
import { AccessError, InvalidError, UnavailableError } from '@leasehold/core'
import type { ChangeResult, BootstrapCluster, Logger, MemberInfo, Network, Replica } from '@leasehold/replica'
import {
  servePeerRequests,
  becomeVoter,
  markBootstrapped,
  bootstrap,
  isLoopback,
  parseAddress,
  parseAllowedNames,
  parseClusterList,
  PeerIdentity,
  plainDialer,
  readTls,
  TcpTransport,
  tlsDialer,
} from '@leasehold/server'
import type { ClusterOptions } from './options.js'

/** A member of a cluster that may start: the options of its replica, and its transport to the peers. */
export interface JoinedCluster {
  readonly peers: TcpTransport
  readonly replica: {
    readonly name: string
    readonly network: Network
    readonly cluster: BootstrapCluster
    readonly epoch: number
  }
  /** Starts to serve requests of peers, once the replica is open. */
  started(member: Replica): Promise<void>
}

/** @throws InvalidError for settings with which no member can start, AccessError for a port that is open to everyone */
export function checkCluster(options: ClusterOptions) {
  const { name, peerListen, cluster } = options
  if (name === undefined || peerListen === undefined || cluster === undefined) {
    throw new InvalidError('a member of a cluster needs --name, --peer-listen and --cluster')
  }
  const list = parseClusterList(cluster)
  for (const [member, address] of list) parseAddress(address, `the address of ${member}`)
  const address = parseAddress(peerListen, '--peer-listen')
  const tls = peerTlsOf(options)
  if (tls !== undefined) readTls(tls)
  else checkInsecurePeers(options, address.host)
  const allowed = options.peerTlsAllowedNames
  if (allowed !== undefined && tls === undefined) {
    throw new InvalidError('--peer-tls-allowed-names needs --peer-tls-cert, --peer-tls-key and --peer-tls-ca')
  }
  return {
    name,
    peerListen: address,
    list,
    tls,
    allowed: allowed === undefined ? undefined : parseAllowedNames(allowed),
  }
}

/** Without TLS, every program that reaches the peer port is a member: it can read, change and stop everything. */
function checkInsecurePeers({ allowInsecurePeers, acceptRepair }: ClusterOptions, host: string): void {
  if (isLoopback(host)) return
  if (allowInsecurePeers !== true) {
    throw new AccessError(
      `refusing to listen for members on ${host} without TLS: every program that reaches it could join`,
      {
        code: 'forbidden',
        hint: 'set --peer-tls-cert, --peer-tls-key and --peer-tls-ca, or --allow-insecure-peers on a network of the members alone',
      },
    )
  }
  if (acceptRepair === true) {
    throw new AccessError(
      `--accept-repair on ${host} needs TLS between members: everyone could take a member's place`,
      {
        code: 'forbidden',
        hint: 'set --peer-tls-cert, --peer-tls-key and --peer-tls-ca; without it, use cluster remove and cluster add',
      },
    )
  }
}

async function listenForPeers(options: ClusterOptions, log: Logger) {
  const { name, peerListen, list, tls, allowed } = checkCluster(options)
  const dialer = tls === undefined ? plainDialer : tlsDialer(tls, log)
  const peers = await TcpTransport.listen(peerListen, {
    dialer,
    identity: new PeerIdentity(list.values(), allowed),
    log,
  })
  return { name, list, peers }
}

/** Listens for the peers, and waits until this member may start. */
export async function joinCluster(
  options: ClusterOptions & { readonly data: string; readonly epoch?: number; readonly tokenStart?: number },
  url: string,
  log: Logger,
  signal: AbortSignal,
): Promise<JoinedCluster> {
  const { name, list, peers } = await listenForPeers(options, log)
  try {
    const { epoch, ...founding } = await bootstrap({
      dir: options.data,
      name,
      url,
      list,
      ...(options.epoch === undefined ? {} : { epoch: options.epoch }),
      ...(options.tokenStart === undefined ? {} : { floor: options.tokenStart }),
      repair: options.repair === true,
      peers,
      log,
      signal,
    })
    peers.introduce({ node: founding.node, address: list.get(name) as string })
    /** Makes a rejoined member a voter: it rejoins as a learner. */
    const vote = async (self: MemberInfo): Promise<void> => {
      const others = [...list].filter(([other]) => other !== name).map(([, address]) => address)
      try {
        await becomeVoter(peers.dialer, self, others, (ms) => sleep(ms, undefined, { signal, ref: false }))
      } catch (error) {
        if (!signal.aborted) log.error(error instanceof Error ? error.message : String(error), { member: name })
      }
    }
    const started = async (member: Replica): Promise<void> => {
      peers.onRefused((other) => {
        member.abandon(
          `another process with the node number of ${name} (${founding.node}) runs at ${other}: the other members refuse this one`,
          `is ${options.data} a copy of a data folder, or mounted twice? A member has one folder and one process; a new member starts with an empty folder, and is added or started with --repair`,
        )
      })
      markBootstrapped(options.data)
      await announce(member, { node: founding.node, name, peer: list.get(name) as string, url })
      const { id, founders, floor, level } = founding
      const record = {
        id,
        epoch,
        founders,
        ...(floor !== undefined && { floor }),
        ...(level !== undefined && { level }),
      }
      const acceptsRepair = options.acceptRepair === true
      servePeerRequests(peers, { name, url, node: founding.node, founding: record, list, acceptsRepair }, member)
      if (options.repair === true) void vote({ node: founding.node, name, peer: list.get(name) as string, url })
    }
    return { peers, replica: { name, network: peers, cluster: founding, epoch }, started }
  } catch (error) {
    await peers.close()
    throw error
  }
}

const ANNOUNCE_ATTEMPTS = 50
const ANNOUNCE_RETRY_MS = 100

/** Stores the addresses of a service of one in its membership, so that members that are added later can find it. */
async function announce(member: Replica, self: MemberInfo): Promise<void> {
  const [known, ...others] = member.members
  if (known === undefined || known.node !== self.node || others.length > 0) return
  if (known.peer === self.peer && known.url === self.url) return
  let result: ChangeResult | undefined
  for (let attempt = 0; attempt < ANNOUNCE_ATTEMPTS; attempt++) {
    result = await new Promise<ChangeResult>((done) => member.changeMembership({ kind: 'update', member: self }, done))
    if (result.kind === 'changed') return
    await sleep(ANNOUNCE_RETRY_MS)
  }
  const why = result?.kind === 'refused' ? result.message : 'no response'
  throw new UnavailableError(`${self.name} could not publish its addresses: ${why}`, { code: 'no-quorum' })
}

function peerTlsOf({ peerTlsCert: cert, peerTlsKey: key, peerTlsCa: ca }: ClusterOptions) {
  if (cert === undefined && key === undefined && ca === undefined) return undefined
  if (cert === undefined || key === undefined || ca === undefined) {
    throw new InvalidError('TLS between members needs --peer-tls-cert, --peer-tls-key and --peer-tls-ca')
  }
  return { cert, key, ca }
}
