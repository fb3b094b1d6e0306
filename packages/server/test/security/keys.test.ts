import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createKey, KeyRing, readKeys, revokeKey } from '../../src/security/keys.js'

let folder: string
let file: string
const NOW = new Date('2026-03-01T12:00:00Z')

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-keys-'))
  file = join(folder, 'keys.json')
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('a key file', () => {
  test('contains hashes, never the key, and is readable by its owner only', () => {
    const { text, entry } = createKey(file, { name: 'billing', rules: ['billing:acquire,read'] }, NOW)
    expect(text).toMatch(/^lh_[0-9a-f]{12}_[\w-]{43}$/)
    // The secret may contain a `_`: it is everything after the second one.
    const secret = text.slice(`lh_${entry.id}_`.length)
    expect(secret).toHaveLength(43)
    expect(readFileSync(file, 'utf8')).not.toContain(secret)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readKeys(file)).toEqual([entry])
  })

  test('finds the principal of a key, and none for a similar key', () => {
    const { text } = createKey(file, { name: 'a', rules: ['a:read'] }, NOW)
    const other = createKey(file, { name: 'b', rules: ['b:read'] }, NOW)
    const ring = new KeyRing(readKeys(file))
    expect(ring.find(text)).toMatchObject({ name: 'a', rules: [{ prefix: 'a', verbs: ['read'] }] })
    const swapped = `${text.slice(0, 16)}${other.text.slice(16)}`
    for (const wrong of ['', 'lh_', `${text}x`, text.slice(0, -1), text.toUpperCase(), swapped]) {
      expect(ring.find(wrong)).toBeUndefined()
    }
  })

  test('no longer contains a revoked key', () => {
    const { text, entry } = createKey(file, { name: 'a', rules: ['a:read'] }, NOW)
    createKey(file, { name: 'b', rules: ['b:read'] }, NOW)
    revokeKey(file, entry.id)
    expect(new KeyRing(readKeys(file)).find(text)).toBeUndefined()
    expect(readKeys(file)).toHaveLength(1)
    expect(() => revokeKey(file, entry.id)).toThrow('has no key')
  })

  test.each(['', '{}', '{"version":1}', '{"version":2,"keys":[]}', '{"version":1,"keys":[{"id":"x"}]}', 'null'])(
    'with the content %j is rejected',
    (content) => {
      writeFileSync(file, content)
      expect(() => readKeys(file)).toThrow(file)
    },
  )

  test('is rejected if it is missing, has an invalid rule, or is in a missing folder', () => {
    expect(() => readKeys(file)).toThrow('cannot read the keys')
    expect(() => createKey(file, { name: '', rules: ['a:write'] }, NOW)).toThrow('access rule')
    expect(() => createKey(file, { name: '', rules: [] }, NOW)).toThrow('at least one rule')
    expect(() => createKey(join(folder, 'none', 'x'), { name: '', rules: ['a:read'] }, NOW)).toThrow('cannot write')
  })
})
