import type { Logger } from '@leasehold/replica'
import { type LoggerOptions, pino } from 'pino'

/** Structured log lines on standard error, one JSON object each, so that standard output stays free for answers. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const log = pino({ base: null, ...options }, pino.destination({ dest: 2, sync: true }))
  return {
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  }
}

/** Says nothing. */
export const silent: Logger = { info() {}, warn() {}, error() {} }
