/** A piece of SQL that is not a value: a quoted name, a part of a statement. */
export interface Fragment {
  readonly fragment: string
}

/** A statement of the SQL core. Values are strings; tokens are decimal text: no driver turns them into doubles. */
export interface Statement {
  /** One more than `values`: what stands before, between and behind them. */
  readonly parts: readonly string[]
  readonly values: readonly unknown[]
}

export const raw = (fragment: string): Fragment => ({ fragment })

/**
 * Writes a statement down: fragments and statements are put in as they are, everything else is a value.
 * @example
 * sql`SELECT token FROM ${raw('"guard"')} WHERE resource = ${name}`
 */
export function sql(texts: TemplateStringsArray, ...holes: readonly (Fragment | Statement | string)[]): Statement {
  const parts: string[] = [texts[0] ?? '']
  const values: unknown[] = []
  const append = (text: string) => {
    parts[parts.length - 1] += text
  }
  for (const [i, hole] of holes.entries()) {
    if (typeof hole === 'string') {
      values.push(hole)
      parts.push('')
    } else if ('fragment' in hole) append(hole.fragment)
    else {
      append(hole.parts[0] ?? '')
      values.push(...hole.values)
      parts.push(...hole.parts.slice(1))
    }
    append(texts[i + 1] ?? '')
  }
  return { parts, values }
}

/** Several statements or values of one list, with a separator. */
export function joined(statements: readonly Statement[], separator: string): Statement {
  return statements.reduce((left, right) => sql`${left}${raw(separator)}${right}`)
}

/** The text with placeholders; `placeholder` is asked for the n-th value, counted from 1. */
export function bound(statement: Statement, placeholder: (n: number) => string): string {
  return statement.parts.reduce((text, part, i) => text + placeholder(i) + part)
}

/**
 * The text with its values written into it, for drivers and mappers whose placeholders differ, and for several statements
 * in one message. `literal` must write any string down safely.
 */
export function inlined(statement: Statement, literal: (value: string) => string): string {
  return statement.parts.reduce((text, part, i) => text + literal(String(statement.values[i - 1])) + part)
}

/** Printable ASCII without quote, backslash and question mark: safe between quotes whatever the session's settings are, and for mappers. */
const PLAIN = /^[ !"#-&(->@-[\]-~]*$/

export function isPlain(value: string): boolean {
  return PLAIN.test(value)
}

export function hexOf(value: string): string {
  return Array.from(new TextEncoder().encode(value), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
