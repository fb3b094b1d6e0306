import { describe, expect, it } from 'vitest'
import { COMMAND_KINDS } from '../src/codec/commands.js'
import { type Command, COMMAND_RULES, isAudited, permissionOf, sessionRule } from '../src/index.js'

const command = (fields: object): Command => fields as Command
const needs = (fields: object, names: readonly string[] = []) =>
  permissionOf({ kind: 'command', correlation: 1, command: command(fields) }, () => names)

describe('COMMAND_RULES', () => {
  it('has a row for every command that can be encoded', () => {
    expect(Object.keys(COMMAND_RULES).sort()).toEqual(Object.keys(COMMAND_KINDS).sort())
  })

  it('denies a command without a row to every client, and asks for the whole service', () => {
    for (const kind of ['touch', 'toString', '__proto__', 'constructor']) {
      expect(needs({ kind })).toMatchObject({ verb: 'admin', names: [''] })
      expect(sessionRule(command({ kind }))).toMatchObject({ code: 'forbidden' })
      expect(isAudited(command({ kind }))).toBe(true)
    }
  })

  it('denies a message of a kind that it does not know', () => {
    expect(permissionOf({ kind: 'bogus' } as never, () => [])).toMatchObject({ verb: 'admin', names: [''] })
  })
})

describe('the permission of a command', () => {
  it('names what it touches', () => {
    const locks = [{ name: 'a' }, { name: 'b' }]
    expect(needs({ kind: 'acquire', locks })).toMatchObject({ verb: 'acquire', names: ['a', 'b'] })
    expect(needs({ kind: 'put', key: 'k' })).toMatchObject({ verb: 'acquire', names: ['k'] })
    expect(needs({ kind: 'delete', key: 'k' })).toMatchObject({ verb: 'acquire', names: ['k'] })
  })

  it('to steal is that of the locks of the hold, or of the whole service when the hold is gone', () => {
    expect(needs({ kind: 'steal', hold: 1 }, ['x'])).toMatchObject({ verb: 'steal', names: ['x'] })
    expect(needs({ kind: 'steal', hold: 1 })).toMatchObject({ verb: 'steal', names: [''] })
  })

  it('is none for what only ends something of its own session', () => {
    for (const fields of [{ kind: 'release' }, { kind: 'cancel' }, { kind: 'closeSession', by: 'owner' }])
      expect(needs(fields)).toBeUndefined()
  })

  it('of a renewal has a budget of its own', () => {
    expect(needs({ kind: 'renew' })?.cost).toBe('renewal')
    expect(needs({ kind: 'openSession' })?.cost).toBe('request')
  })
})

describe('the session of a command', () => {
  it('is its own for everything that acts in a session', () => {
    for (const kind of ['renew', 'acquire', 'cancel', 'adopt']) expect(sessionRule(command({ kind }))).toBe('own')
    for (const kind of ['release', 'put', 'delete']) expect(sessionRule(command({ kind, session: 3 }))).toBe('own')
  })

  it('may be missing only where repeating the command has no effect', () => {
    expect(sessionRule(command({ kind: 'release', secret: 'ab' }))).toBe('none')
    expect(sessionRule(command({ kind: 'release' }))).toMatchObject({ code: 'forbidden' })
    for (const kind of ['put', 'delete']) {
      expect(sessionRule(command({ kind, ifVersion: 7n }))).toBe('none')
      expect(sessionRule(command({ kind, ifVersion: 0n }))).toMatchObject({ code: 'invalid' })
      expect(sessionRule(command({ kind }))).toMatchObject({ code: 'invalid' })
    }
  })

  it('cannot be ended by a client as dead', () => {
    expect(sessionRule(command({ kind: 'closeSession', by: 'death' }))).toMatchObject({ code: 'forbidden' })
    expect(sessionRule(command({ kind: 'closeSession', by: 'operator' }))).toBe('none')
  })
})

describe('configure', () => {
  it('is for operators, and written to the audit log', () => {
    expect(needs({ kind: 'configure', limits: {} })).toMatchObject({ verb: 'admin', names: [''] })
    expect(isAudited(command({ kind: 'configure' }))).toBe(true)
  })

  it('of a feature level or a floor is for the leader alone', () => {
    expect(sessionRule(command({ kind: 'configure', limits: {} }))).toBe('none')
    for (const fields of [{ level: 2 }, { floor: 5 }])
      expect(sessionRule(command({ kind: 'configure', ...fields }))).toMatchObject({ code: 'forbidden' })
  })
})
