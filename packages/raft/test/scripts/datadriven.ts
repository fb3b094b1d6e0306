/** One case of a datadriven file: a command with arguments, lines of input, and the expected output. */
export interface Case {
  readonly line: number
  readonly command: string
  readonly args: readonly Argument[]
  readonly input: string
  readonly expected: readonly string[]
  /** Line number of the first expected line. */
  readonly expectedLine: number
}

export interface Argument {
  readonly key: string
  readonly values: readonly string[]
}

const BAR = '----'

export function argument(one: Case, key: string): readonly string[] | undefined {
  return one.args.find((arg) => arg.key === key)?.values
}

/** Reads a whole file: comments, directives that continue after a backslash, output fenced by doubled bars. */
export function parseCases(text: string): Case[] {
  const lines = text.split('\n')
  const cases: Case[] = []
  let at = 0
  while (at < lines.length) {
    const start = at
    let directive = (lines[at++] as string).trim()
    if (directive === '' || directive.startsWith('#')) continue
    while (directive.endsWith('\\') && at < lines.length) {
      directive = `${directive.slice(0, -1).trim()} ${(lines[at++] as string).trim()}`
    }
    const input: string[] = []
    while (at < lines.length && lines[at] !== BAR) input.push(lines[at++] as string)
    if (at === lines.length) throw new Error(`line ${start + 1}: no ${BAR} after ${directive}`)
    at++
    const fenced = lines[at] === BAR
    if (fenced) at++
    const expectedLine = at + 1
    const expected: string[] = []
    const ended = () => (fenced ? lines[at] === BAR && lines[at + 1] === BAR : lines[at] === '')
    while (at < lines.length && !ended()) expected.push(lines[at++] as string)
    if (fenced) {
      if (at >= lines.length) throw new Error(`line ${expectedLine}: the output has no end`)
      at += 2
      if (at < lines.length && lines[at] !== '') throw new Error(`line ${at + 1}: a blank line ends the output`)
    }
    const { command, args } = parseDirective(directive, start + 1)
    cases.push({ line: start + 1, command, args, input: input.join('\n').trim(), expected, expectedLine })
  }
  return cases
}

function parseDirective(text: string, line: number): { command: string; args: Argument[] } {
  const words = text.match(/[^\s=(),]+=\([^)]*\)|[^\s]+/g)
  if (words === null) throw new Error(`line ${line}: not a directive: ${text}`)
  const [command, ...rest] = words
  const args = rest.map((word): Argument => {
    if (/[\\?]/.test(word)) throw new Error(`line ${line}: not an argument: ${word}`)
    const equals = word.indexOf('=')
    return equals < 0
      ? { key: word, values: [] }
      : { key: word.slice(0, equals), values: valuesOf(word.slice(equals + 1)) }
  })
  return { command: command as string, args }
}

/** A single value, or a list in brackets, which may be empty. */
function valuesOf(text: string): string[] {
  const bracketed = text.startsWith('(')
  const values = (bracketed ? text.slice(1, -1) : text).split(',').map((one) => one.trim())
  return bracketed && values.every((one) => one === '') ? [] : values
}
