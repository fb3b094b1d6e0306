import { isIPv4 } from 'node:net'
import type { AccessRule } from './rules.js'

/** The identity of a caller. */
export interface Principal {
  /** For the audit log and for limits: `key:ID`, `jwt:SUBJECT` or `anonymous`. Never a secret. */
  readonly id: string
  /** The name of the key, or the subject of the web token. */
  readonly name: string
  readonly rules: readonly AccessRule[]
  /** Calendar time in milliseconds when it expires; undefined: never. */
  readonly expiresAtMs?: number | undefined
}

/** Every caller of a service without authentication. */
export const ANONYMOUS: Principal = {
  id: 'anonymous',
  name: '',
  rules: [{ prefix: '', verbs: ['acquire', 'read', 'steal', 'admin'] }],
}

/**
 * The client to which limits apply: one per key or web token, or, for anonymous callers, one per address. For IPv6 that is
 * the /64 network, because one machine can use all of its addresses.
 */
export function clientOf({ id }: Principal, remote: string): string {
  return id === ANONYMOUS.id ? networkOf(remote.replace(/:\d+$/, '')) : id
}

function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:/i, '')
  if (isIPv4(plain) || !address.includes(':')) return plain
  const [head = '', tail] = address.replace(/%.*$/, '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const tailGroups = tail === undefined || tail === '' ? [] : tail.split(':')
  while (groups.length + tailGroups.length < 8) groups.push('0')
  return `${[...groups, ...tailGroups].slice(0, 4).join(':')}::/64`
}
