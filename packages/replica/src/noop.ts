import type { Logger, Network } from './platform.js'

/** A logger that drops everything. */
export const noopLogger: Logger = { info() {}, warn() {}, error() {} }

/** The network of a service with a single member: sends nothing. */
export const noopNetwork: Network = { send() {}, receive() {}, setPeers() {} }
