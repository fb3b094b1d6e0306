import type { HoldId } from './brand.js'
import type { ErrorCode } from './error-table.js'
import type { ClientMessage, Hello } from './frames.js'
import type { Command } from './operations.js'

/** The verbs of access rules. */
export type AccessVerb = 'acquire' | 'read' | 'steal' | 'admin'

/** The right that a client's message needs. */
export interface Permission {
  readonly verb: AccessVerb
  /** Locks, registers or prefixes that a rule must cover; `''` is the whole service. Empty: the verb for any name at all. */
  readonly names: readonly string[]
  /** The request budget that it uses. */
  readonly cost: 'request' | 'renewal'
}

/** Why a connection may not send a command, whatever the caller's rights. */
export interface Misuse {
  readonly code: ErrorCode
  readonly message: string
}

/**
 * The session that a command must belong to. `own`: one that this connection opened or attached to. `none`: it has no session
 * or deliberately names that of another client.
 */
export type SessionRule = 'own' | 'none' | Misuse

export interface CommandRule<C extends Command> {
  /** Returns undefined if the command's session is sufficient. `namesOf` returns the locks of a hold, none if it is gone. */
  readonly permission: (command: C, namesOf: (hold: HoldId) => readonly string[]) => Permission | undefined
  readonly session: (command: C) => SessionRule
  /** Whether the command is an operator's, which is written to the audit log before it is proposed. */
  readonly audited: (command: C) => boolean
}

type CommandRules = { readonly [K in Command['kind']]: CommandRule<Extract<Command, { kind: K }>> }

const WHOLE_SERVICE = ['']
const ADMIN: Permission = { verb: 'admin', names: WHOLE_SERVICE, cost: 'request' }
const ANY_ACQUIRE: Permission = { verb: 'acquire', names: [], cost: 'request' }
const no = (): boolean => false
const own = (): SessionRule => 'own'
const none = (): SessionRule => 'none'

function writeSession({ kind, session, ifVersion }: Extract<Command, { kind: 'put' | 'delete' }>): SessionRule {
  if (session !== undefined) return 'own'
  if (ifVersion !== undefined && ifVersion > 0n) return 'none'
  const message = `a ${kind} without a session needs ifVersion above 0: repeating it must have no effect`
  return { code: 'invalid', message }
}

/**
 * The permission table: what each command of the state machine needs. It is total: a command without a row does not compile,
 * and one that bypasses the compiler is denied. Server, stream and lab all read it.
 */
export const COMMAND_RULES: CommandRules = {
  openSession: { permission: () => ANY_ACQUIRE, session: none, audited: no },
  renew: { permission: () => ({ ...ANY_ACQUIRE, cost: 'renewal' }), session: own, audited: no },
  closeSession: {
    permission: ({ by }) => (by === 'owner' ? undefined : ADMIN),
    session: ({ by }) => {
      if (by === 'death') return { code: 'forbidden', message: 'only the service itself knows which process is dead' }
      return by === 'operator' ? 'none' : 'own'
    },
    audited: ({ by }) => by === 'operator',
  },
  acquire: {
    permission: ({ locks }) => ({ verb: 'acquire', names: locks.map(({ name }) => name), cost: 'request' }),
    session: own,
    audited: no,
  },
  cancel: { permission: () => undefined, session: own, audited: no },
  release: {
    permission: () => undefined,
    session: ({ session, secret }) => {
      if (session !== undefined) return 'own'
      if (secret !== undefined) return 'none'
      return { code: 'forbidden', message: "a release without a session needs the hold's secret" }
    },
    audited: no,
  },
  adopt: { permission: () => ANY_ACQUIRE, session: own, audited: no },
  steal: {
    permission: ({ hold }, namesOf) => {
      const names = namesOf(hold)
      return { verb: 'steal', names: names.length === 0 ? WHOLE_SERVICE : names, cost: 'request' }
    },
    session: none,
    audited: no,
  },
  put: {
    permission: ({ key }) => ({ verb: 'acquire', names: [key], cost: 'request' }),
    session: writeSession,
    audited: no,
  },
  delete: {
    permission: ({ key }) => ({ verb: 'acquire', names: [key], cost: 'request' }),
    session: writeSession,
    audited: no,
  },
  configure: {
    permission: () => ADMIN,
    session: ({ level, floor }) => {
      if (level === undefined && floor === undefined) return 'none'
      return {
        code: 'forbidden',
        message: 'only the leader itself raises the feature level and the floor of the counter',
      }
    },
    audited: () => true,
  },
}

/** For a kind without a row, which the compiler rules out: only an operator of the whole service may send it. */
const DENIED: CommandRule<Command> = {
  permission: () => ADMIN,
  session: ({ kind }) => ({
    code: 'forbidden',
    message: `a command of kind ${JSON.stringify(kind)} is not for clients`,
  }),
  audited: () => true,
}

function ruleOf(command: Command): CommandRule<Command> {
  if (!Object.hasOwn(COMMAND_RULES, command.kind)) return DENIED
  return COMMAND_RULES[command.kind] as CommandRule<never> as CommandRule<Command>
}

/** Returns the session that the command must belong to, or why this connection may not send it. */
export function sessionRule(command: Command): SessionRule {
  return ruleOf(command).session(command)
}

/** Whether the command is an operator's, which must be in the audit log before it takes effect. */
export function isAudited(command: Command): boolean {
  return ruleOf(command).audited(command)
}

/**
 * Returns the permission that a message of a stream needs; undefined if none, because it only ends something of its session.
 * `namesOf` returns the locks of a hold, none if it is gone.
 */
export function permissionOf(
  message: Exclude<ClientMessage, Hello>,
  namesOf: (hold: HoldId) => readonly string[],
): Permission | undefined {
  switch (message.kind) {
    case 'attach':
      return ANY_ACQUIRE
    case 'command':
      return ruleOf(message.command).permission(message.command, namesOf)
    case 'query':
      return { verb: 'read', names: [message.query.name ?? message.query.prefix ?? ''], cost: 'request' }
    case 'get':
      return { verb: 'read', names: [message.key], cost: 'request' }
    case 'watch':
      return { verb: 'read', names: [message.prefix], cost: 'request' }
    case 'unwatch':
    case 'ping':
      return undefined
    default:
      message satisfies never
      return ADMIN
  }
}
