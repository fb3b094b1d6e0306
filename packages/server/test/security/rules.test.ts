import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { allows, formatRule, hasVerb, parseRule, VERBS } from '../../src/security/rules.js'

describe('an access rule', () => {
  const rules = [parseRule('billing:acquire,read'), parseRule('*:read')]

  test('covers whole path segments', () => {
    expect(allows(rules, 'acquire', 'billing')).toBe(true)
    expect(allows(rules, 'acquire', 'billing/1')).toBe(true)
    expect(allows(rules, 'acquire', 'billing2')).toBe(false)
    expect(allows(rules, 'acquire', '')).toBe(false)
    expect(allows(rules, 'steal', 'billing')).toBe(false)
  })

  test('for * covers the whole service', () => {
    expect(allows(rules, 'read', '')).toBe(true)
    expect(allows(rules, 'read', 'anything/else')).toBe(true)
    expect(allows([parseRule('*:admin')], 'read', 'a')).toBe(false)
  })

  test('allows a verb without a name if a handle proves the rest', () => {
    expect(hasVerb(rules, 'acquire')).toBe(true)
    expect(hasVerb(rules, 'steal')).toBe(false)
  })

  test.each(['', 'billing', 'billing:', ':read', 'billing:write', 'billing:read,', 'a\u0000b:read', 'billing:READ'])(
    'rejects %j',
    (text) => {
      expect(() => parseRule(text)).toThrow(/rule|name/)
    },
  )

  test('round-trips as text', () => {
    const name = fc.stringMatching(/^[a-z0-9:]([a-z0-9/:-]{0,20}[a-z0-9])?$/)
    const verbs = fc.uniqueArray(fc.constantFrom(...VERBS), { minLength: 1 })
    fc.assert(
      fc.property(name, verbs, (prefix, some) => {
        const text = `${prefix}:${some.join(',')}`
        expect(formatRule(parseRule(text))).toBe(text)
      }),
    )
  })
})
