import { isIPv4 } from 'node:net'
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

/**
 * Who a limit counts for: whoever shows the same key, or comes from the same address. Of IPv6 that is the network of 64
 * bits: a machine has all addresses of it.
 */
export function clientOf({ id }: Principal, remote: string): string {
  return id === ANONYMOUS.id ? networkOf(remote.replace(/:\d+$/, '')) : id
}

function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:/i, '')
  if (isIPv4(plain) || !address.includes(':')) return plain
  const [head = '', tail] = address.replace(/%.*$/, '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const behind = tail === undefined || tail === '' ? [] : tail.split(':')
  while (groups.length + behind.length < 8) groups.push('0')
  return `${[...groups, ...behind].slice(0, 4).join(':')}::/64`
}
