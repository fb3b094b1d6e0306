export { type Address, parseAddress } from './address.js'
export { type BootstrapRecord, type BootstrapStatus, fetchBootstrapStatus } from './bootstrap-status.js'
export {
  bootstrap,
  type BootstrapOptions,
  checkDataNotLost,
  markBootstrapped,
  parseClusterList,
  quarantineFolder,
  servePeerRequests,
  storedBootstrapRecord,
} from './bootstrap.js'
export { ClusterAdmin, type ClusterMember } from './cluster-admin.js'
export { type Dialer, plainDialer, tlsDialer } from './dialer.js'
export { becomeVoter } from './rejoin.js'
export { TcpTransport } from './transport.js'
