import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const A = 293253841305472n
const B = 293253841305600n
const DIM = '\x1b[2m'
const END = '\x1b[22m'

async function load(colour: boolean) {
  vi.stubEnv('NO_COLOR', colour ? '' : '1')
  vi.stubEnv('FORCE_COLOR', colour ? '1' : '')
  vi.resetModules()
  return { ...(await import('../src/tokens.js')), ...(await import('../src/table.js')) }
}

beforeEach(() => vi.stubEnv('TERM', 'xterm'))
afterEach(() => {
  vi.unstubAllEnvs()
  vi.resetModules()
})

describe('tokens for people', () => {
  test('prints all digits, and only digits, without colours', async () => {
    const { tokenCells, tableLines, dimTokens, TokenTrail } = await load(false)
    const cell = tokenCells([A, B])
    expect(tableLines(['TOKEN'], [[cell(A)], [cell(B)]])).toEqual(['TOKEN', String(A), String(B)])
    expect(dimTokens([`token ${A}`, `token ${B}`])).toEqual([`token ${A}`, `token ${B}`])
    expect(new TokenTrail().dim(`token ${A}`)).toBe(`token ${A}`)
  })

  test('dims the digits that all tokens of a column share', async () => {
    const { tokenCells, tableLines } = await load(true)
    const cell = tokenCells([A, B])
    const lines = tableLines(
      ['TOKEN', 'LEFT'],
      [
        [cell(A), '1s'],
        [cell(B), '2s'],
      ],
    )
    expect(lines.slice(1)).toEqual([`${DIM}293253841305${END}472  1s`, `${DIM}293253841305${END}600  2s`])
  })

  test('dims nothing in a column with one token', async () => {
    const { tokenCells, tableLines } = await load(true)
    expect(tableLines(['TOKEN'], [[tokenCells([A])(A)]])[1]).toBe(String(A))
  })

  test('dims the digits that the tokens of several lines share', async () => {
    const { dimTokens } = await load(true)
    expect(dimTokens([`  held, token ${A}, slot 0`, 'by C1', `token ${B}`])).toEqual([
      `  held, token ${DIM}293253841305${END}472, slot 0`,
      'by C1',
      `token ${DIM}293253841305${END}600`,
    ])
  })

  test('dims the digits that the token of an event shares with the previous one', async () => {
    const { TokenTrail } = await load(true)
    const trail = new TokenTrail()
    expect(trail.dim(`token ${A}`)).toBe(`token ${A}`)
    expect(trail.dim('released')).toBe('released')
    expect(trail.dim(`token ${B}`)).toBe(`token ${DIM}293253841305${END}600`)
    expect(trail.dim(`token ${B + 1n}`)).toBe(`token ${DIM}29325384130560${END}1`)
    expect(trail.dim('token 7')).toBe('token 7')
  })
})
