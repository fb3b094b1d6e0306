import { describe, expect, test } from 'vitest'
import { ANONYMOUS, clientOf } from '../../src/security/principal.js'

describe('clientOf', () => {
  test('is the address of an anonymous caller, or its /64 network for IPv6', () => {
    const of = (remote: string) => clientOf(ANONYMOUS, remote)
    expect(of('10.0.0.1:4000')).toBe(of('::ffff:10.0.0.1:5000'))
    expect(of('10.0.0.1:4000')).not.toBe(of('10.0.0.2:4000'))
    expect(of('2001:db8:1:2::7:4000')).toBe(of('2001:db8:1:2:aaaa:bbbb:cccc:dddd:5000'))
    expect(of('2001:db8:1:2::7:4000')).not.toBe(of('2001:db8:1:3::7:4000'))
  })
})
