import type { Logger, Network } from './platform.js'

/** Says nothing. */
export const quietLogger: Logger = { info() {}, warn() {}, error() {} }

/** The network of a member that is alone. */
export const noNetwork: Network = { send() {}, receive() {}, setPeers() {} }
