export type { AccessRequest, AccessVerb, Authorize } from './access.js'
export { createLogger } from './logger.js'
export { DEFAULT_HOST, DEFAULT_PORT, type ServerOptions } from './options.js'
export { createServer, type LeaseholdServer } from './server.js'
