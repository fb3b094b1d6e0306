import type { Logger, Network } from './platform.js'

/** Says nothing. */
export const noopLogger: Logger = { info() {}, warn() {}, error() {} }

/** The network of a member that is alone. */
export const noopNetwork: Network = { send() {}, receive() {}, setPeers() {} }
