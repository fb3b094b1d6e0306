import { commonPrefix } from '@leasehold/core'
import { outColours } from './colours.js'
import type { Cell } from './table.js'

/** `token N` in a line for people. */
const NAMED = /\btoken (\d+)/g

/** Tokens of one column: all digits are printed, and with colours those that all have in common are dim. */
export function tokenCells(tokens: readonly bigint[]): (token: bigint) => Cell {
  const shared = commonPrefix(tokens).length
  return (token) => ({ text: String(token), paint: (text) => dimmed(text, shared) })
}

/** Dims what the tokens that lines name (`token N`) have in common. */
export function dimTokens(lines: readonly string[]): string[] {
  const tokens = lines.flatMap((line) => [...line.matchAll(NAMED)].map(([, digits]) => digits as string))
  const shared = commonPrefix(tokens.map(BigInt)).length
  return lines.map((line) => dimNamed(line, shared))
}

/** The same for lines that come one after another: dims what a line's tokens have in common with those of the line before. */
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
