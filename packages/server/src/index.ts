export type { AccessRequest, AccessVerb, Authorize } from './access.js'
export { createLogger } from './logger.js'
export { DEFAULT_HOST, DEFAULT_PORT, type ServerOptions } from './options.js'
export { createServer, type LeaseholdServer } from './server.js'
export type { ClusterMember } from './cluster.js'
export {
  answerAsMember,
  type FoundingRecord,
  giveUpFolder,
  keptFounding,
  muster,
  type MusterOptions,
  parseClusterList,
  type Standing,
  standingAt,
} from './peers/muster.js'
export { becomeVoter } from './peers/repair.js'
export { type Address, parseAddress, TcpPeers } from './peers/transport.js'
