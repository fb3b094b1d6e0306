export {
  type AccessRequest,
  type AccessVerb,
  type Authorize,
  type ClientLimits,
  createKey,
  followTls,
  isLoopback,
  type JwtOptions,
  JwtVerifier,
  type KeyEntry,
  type NewKey,
  readKeys,
  readTls,
  revokeKey,
  type TlsFiles,
} from './security/index.js'
export { createLogger } from './observability/index.js'
export { checkListen, openApiDocument } from './http/index.js'
export { requiresCredentials, DEFAULT_HOST, DEFAULT_PORT, type ServerOptions } from './options.js'
export { createServer, type LeaseholdServer } from './server.js'
export {
  type Address,
  becomeVoter,
  bootstrap,
  type BootstrapOptions,
  type BootstrapRecord,
  type BootstrapStatus,
  checkDataNotLost,
  type ClusterMember,
  type Dialer,
  fetchBootstrapStatus,
  markBootstrapped,
  parseAddress,
  parseClusterList,
  plainDialer,
  quarantineFolder,
  servePeerRequests,
  storedBootstrapRecord,
  TcpTransport,
  tlsDialer,
} from './peers/index.js'
