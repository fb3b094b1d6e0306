import { commonPrefix } from '@leasehold/core'
import { outColours } from './colours.js'
import type { Cell } from './table.js'

/** `token N` in a line of text. */
const NAMED = /\btoken (\d+)/g

/** Returns a formatter for the tokens of one column: it prints all digits, and dims the prefix that all tokens share. */
export function tokenCells(tokens: readonly bigint[]): (token: bigint) => Cell {
  const shared = commonPrefix(tokens).length
  return (token) => ({ text: String(token), paint: (text) => dimmed(text, shared) })
}

/** Dims the common prefix of all tokens in the lines (`token N`). */
export function dimTokens(lines: readonly string[]): string[] {
  const tokens = lines.flatMap((line) => [...line.matchAll(NAMED)].map(([, digits]) => digits as string))
  const shared = commonPrefix(tokens.map(BigInt)).length
  return lines.map((line) => dimNamed(line, shared))
}

/** Dims tokens in a sequence of lines: the prefix that a line's tokens share with those of the line before. */
export class TokenTrail {
  #last: readonly string[] = []

  dim(line: string): string {
    const tokens = [...line.matchAll(NAMED)].map(([, digits]) => digits as string)
    if (tokens.length === 0) return line
    const shared = commonPrefix([...this.#last, ...tokens].map(BigInt)).length
    this.#last = tokens
    return dimNamed(line, shared)
  }
}

function dimNamed(line: string, shared: number): string {
  return line.replace(NAMED, (_, digits: string) => `token ${dimmed(digits, shared)}`)
}

function dimmed(digits: string, shared: number): string {
  return shared === 0 ? digits : outColours.dim(digits.slice(0, shared)) + digits.slice(shared)
}
