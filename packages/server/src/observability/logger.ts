import type { Logger } from '@leasehold/replica'
import { type LoggerOptions, pino } from 'pino'

/** Creates a logger that writes one JSON object per line to standard error, so that standard output is free for results. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const log = pino({ base: null, ...options }, pino.destination({ dest: 2, sync: true }))
  return {
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  }
}

/** A logger that discards everything. */
export const silent: Logger = { info() {}, warn() {}, error() {} }
