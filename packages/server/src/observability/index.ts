export { createLogger, silent } from './logger.js'
export { Metrics } from './metrics.js'
