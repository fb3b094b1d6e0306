import type { AccessRule } from './rules.js'

/** Who asks, as far as the service knows. */
export interface Principal {
  /** For the audit and for limits: `key:ID`, `jwt:SUBJECT`, `anonymous`. Never a secret. */
  readonly id: string
  /** What its owner calls it. */
  readonly name: string
  readonly rules: readonly AccessRule[]
  /** Calendar time in milliseconds from which it is worth nothing; undefined: no end. */
  readonly expiresAtMs?: number | undefined
}

/** Of a service that asks nobody for credentials. */
export const ANONYMOUS: Principal = {
  id: 'anonymous',
  name: '',
  rules: [{ prefix: '', verbs: ['acquire', 'read', 'steal', 'admin'] }],
}
