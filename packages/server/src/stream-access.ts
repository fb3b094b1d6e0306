import type { ClientMessage, Command, Hello, HoldId } from '@leasehold/core'
import type { AccessRequest } from './access.js'
import type { Cost } from './security/access-control.js'

export type Access = Pick<AccessRequest, 'verb' | 'names'> & { readonly cost: Cost }

/**
 * Which right a message of a stream needs; undefined: none. What gives back is proven by the session that it belongs to.
 * `namesOf`: the locks of a hold, none when it is gone.
 */
export function accessOf(
  message: Exclude<ClientMessage, Hello>,
  namesOf: (hold: HoldId) => readonly string[],
): Access | undefined {
  switch (message.kind) {
    case 'attach':
      return { verb: 'acquire', names: [], cost: 'request' }
    case 'command':
      return commandAccess(message.command, namesOf)
    case 'query':
      return { verb: 'read', names: [message.query.name ?? message.query.prefix ?? ''], cost: 'request' }
    case 'get':
      return { verb: 'read', names: [message.key], cost: 'request' }
    case 'watch':
      return { verb: 'read', names: [message.prefix], cost: 'request' }
    case 'unwatch':
    case 'ping':
      return undefined
  }
}

function commandAccess(command: Command, namesOf: (hold: HoldId) => readonly string[]): Access | undefined {
  switch (command.kind) {
    case 'acquire':
      return { verb: 'acquire', names: command.locks.map((lock) => lock.name), cost: 'request' }
    case 'put':
    case 'delete':
      return { verb: 'acquire', names: [command.key], cost: 'request' }
    case 'steal': {
      const names = namesOf(command.hold)
      return { verb: 'steal', names: names.length === 0 ? [''] : names, cost: 'request' }
    }
    case 'configure':
      return { verb: 'admin', names: [''], cost: 'request' }
    case 'closeSession':
      return command.by === 'owner' ? undefined : { verb: 'admin', names: [''], cost: 'request' }
    case 'renew':
      return { verb: 'acquire', names: [], cost: 'renewal' }
    case 'openSession':
    case 'adopt':
      return { verb: 'acquire', names: [], cost: 'request' }
    case 'cancel':
    case 'release':
      return undefined
  }
}
