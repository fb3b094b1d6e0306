import type { ClientMessage, Command, Hello } from '@leasehold/core'
import type { AccessRequest } from './access.js'

type Access = Pick<AccessRequest, 'verb' | 'names'>

/** Which right a message of a stream needs; undefined: none. */
export function accessOf(message: Exclude<ClientMessage, Hello>): Access | undefined {
  switch (message.kind) {
    case 'attach':
      return { verb: 'acquire', names: [] }
    case 'command':
      return commandAccess(message.command)
    case 'query':
      return { verb: 'read', names: [message.query.name ?? message.query.prefix ?? ''] }
    case 'get':
      return { verb: 'read', names: [message.key] }
    case 'watch':
      return { verb: 'read', names: [message.prefix] }
    case 'unwatch':
    case 'ping':
      return undefined
  }
}

function commandAccess(command: Command): Access {
  switch (command.kind) {
    case 'acquire':
      return { verb: 'acquire', names: command.locks.map((lock) => lock.name) }
    case 'put':
    case 'delete':
      return { verb: 'acquire', names: [command.key] }
    case 'steal':
      return { verb: 'steal', names: [''] }
    case 'configure':
      return { verb: 'admin', names: [''] }
    case 'closeSession':
      return command.by === 'owner' ? { verb: 'acquire', names: [] } : { verb: 'admin', names: [''] }
    case 'openSession':
    case 'renew':
    case 'cancel':
    case 'release':
    case 'adopt':
      return { verb: 'acquire', names: [] }
  }
}
