export type { AccessRequest, AccessVerb, Authorize } from './access.js'
export { createLogger } from './logger.js'
export type { ClientLimits } from './security/budget.js'
export { type JwtOptions, JwtVerifier } from './security/jwt.js'
export { createKey, type KeyEntry, type NewKey, readKeys, revokeKey } from './security/keys.js'
export { followTls, readTls, type TlsFiles } from './security/tls.js'
export { openApiDocument } from './app.js'
export { asksForCredentials, DEFAULT_HOST, DEFAULT_PORT, type ServerOptions } from './options.js'
export { isLoopback } from './origin.js'
export { checkListen, createServer, type LeaseholdServer } from './server.js'
export type { ClusterMember } from './cluster.js'
export {
  answerAsMember,
  checkNotLost,
  giveUpFolder,
  foundingIsOver,
  keptFounding,
  muster,
  type MusterOptions,
  parseClusterList,
} from './peers/muster.js'
export { type FoundingRecord, type Standing, standingAt } from './peers/standing.js'
export { type Dialer, plainDialer, tlsDialer } from './peers/dial.js'
export { becomeVoter } from './peers/repair.js'
export { type Address, parseAddress } from './peers/ask.js'
export { TcpPeers } from './peers/transport.js'
