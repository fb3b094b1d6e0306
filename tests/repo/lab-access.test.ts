import { type ClientMessage, type Command, type Hello, permissionOf } from '@leasehold/core'
import { describe, expect, test } from 'vitest'
import { Access, type ClientRights } from '../../packages/lab/src/cluster/access.js'
import { allows, hasVerb, parseRule } from '../../packages/server/src/security/rules.js'

/* The lab stands below the server and decides over messages by itself: it must decide as the server does. */

type Message = Exclude<ClientMessage, Hello>

const locks = (...names: string[]) => names.map((name) => ({ name, mode: 'exclusive' }))
const COMMANDS: readonly Record<string, unknown>[] = [
  { kind: 'acquire', locks: locks('a/L') },
  { kind: 'acquire', locks: locks('b/L') },
  { kind: 'acquire', locks: locks('a/L', 'b/L') },
  { kind: 'put', key: 'a/k' },
  { kind: 'delete', key: 'b/k' },
  { kind: 'steal', hold: 1 },
  { kind: 'configure' },
  { kind: 'closeSession', by: 'owner' },
  { kind: 'closeSession', by: 'operator' },
  { kind: 'closeSession', by: 'death' },
  { kind: 'renew' },
  { kind: 'openSession' },
  { kind: 'adopt' },
  { kind: 'cancel' },
  { kind: 'release' },
]
const MESSAGES = [
  ...COMMANDS.map((command) => ({ kind: 'command', command: command as unknown as Command })),
  { kind: 'attach' },
  { kind: 'query', query: { name: 'a/L' } },
  { kind: 'query', query: { prefix: 'b' } },
  { kind: 'query', query: {} },
  { kind: 'get', key: 'a/k' },
  { kind: 'watch', prefix: 'a' },
  { kind: 'watch', prefix: '' },
  { kind: 'unwatch' },
  { kind: 'ping' },
] as unknown as Message[]

const RIGHTS: readonly ClientRights[] = [
  {},
  { acquire: ['a'] },
  { read: ['b'] },
  { acquire: ['a', 'b'], read: [''] },
  { acquire: [''], read: [''], steal: ['a'] },
  { acquire: [''], read: [''], steal: [''], admin: [''] },
]

/** As the server does: {@link permissionOf}, then every name by the rules, or the verb for any name at all. */
function serverAllows(message: Message, rights: ClientRights): boolean {
  const access = permissionOf(message, () => [])
  if (access === undefined) return true
  const rules = Object.entries(rights).flatMap(([verb, prefixes]: [string, readonly string[]]) =>
    prefixes.map((prefix) => parseRule(`${prefix || '*'}:${verb}`)),
  )
  const { verb, names } = access
  return names.length === 0 ? hasVerb(rules, verb) : names.every((name) => allows(rules, verb, name))
}

describe('the lab allows what the server allows', () => {
  for (const message of MESSAGES) {
    test(JSON.stringify(message), () => {
      for (const rights of RIGHTS) {
        const access = new Access()
        access.allow('C1', rights)
        const peer = access.peer()
        peer.authenticate?.({ client: 'C1' } as Hello)
        const refused = peer.authorize?.(message)
        expect([rights, refused === undefined]).toEqual([rights, serverAllows(message, rights)])
        expect(refused?.code ?? 'forbidden').toBe('forbidden')
      }
    })
    test(`${JSON.stringify(message)} with credentials that have expired`, () => {
      const access = new Access()
      access.expire('C1')
      const peer = access.peer()
      expect(peer.authenticate?.({ client: 'C1' } as Hello)?.code).toBe('unauthenticated')
      const isFree = permissionOf(message, () => []) === undefined
      expect(peer.authorize?.(message)?.code).toBe(isFree ? undefined : 'unauthenticated')
    })
  }
})
