import { InvalidError } from './errors.js'

export const NAME_BYTES_MAX = 512

/** Returns the length of a string in UTF-8 bytes, or −1 if it has a lone surrogate. */
export function utf8Length(text: string): number {
  let bytes = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) bytes += 1
    else if (unit < 0x800) bytes += 2
    else if (unit >= 0xd800 && unit <= 0xdfff) {
      const next = text.charCodeAt(i + 1)
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return -1
      bytes += 4
      i++
    } else bytes += 3
  }
  return bytes
}

/** Returns why `name` cannot name a lock or a register, or undefined if it can. */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string') return `a name is a string, not a ${typeof name}`
  if (name.length === 0) return 'a name has at least one character'
  if (name.length > NAME_BYTES_MAX) return `a name has at most ${NAME_BYTES_MAX} bytes`
  for (let i = 0; i < name.length; i++) {
    const unit = name.charCodeAt(i)
    if (unit < 0x20 || (unit >= 0x7f && unit <= 0x9f)) return 'a name has no control characters'
  }
  const bytes = utf8Length(name)
  if (bytes < 0) return 'a name is valid Unicode, without lone surrogates'
  if (bytes > NAME_BYTES_MAX) return `a name has at most ${NAME_BYTES_MAX} bytes, this one has ${bytes}`
  return undefined
}

/**
 * Checks the name of a lock or register: 1–512 bytes of UTF-8 without control characters.
 * @throws InvalidError
 */
export function checkName(name: unknown): string {
  const problem = nameProblem(name)
  if (problem !== undefined) throw new InvalidError(problem)
  return name as string
}

/**
 * Whether `prefix` covers `name`, by whole path segments: `account/1` covers `account/1` and `account/1/x`, but not
 * `account/10`. The empty prefix covers every name; one with a trailing slash covers only names below it.
 */
export function covers(prefix: string, name: string): boolean {
  if (prefix === '') return true
  if (!name.startsWith(prefix)) return false
  return name.length === prefix.length || prefix.endsWith('/') || name.charCodeAt(prefix.length) === 0x2f
}
