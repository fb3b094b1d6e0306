/** A piece of SQL that is not a value, such as a quoted name. */
export interface Fragment {
  readonly fragment: string
}

/** A statement with its values. Tokens are decimal text, so that no driver converts them to doubles. */
export interface Statement {
  /** The text before, between and after the values: one more than `values`. */
  readonly parts: readonly string[]
  readonly values: readonly unknown[]
}

export const raw = (fragment: string): Fragment => ({ fragment })

/**
 * Builds a statement: fragments and statements are inserted as text, strings become values.
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

/** Joins statements with a separator. */
export function joined(statements: readonly Statement[], separator: string): Statement {
  return statements.reduce((left, right) => sql`${left}${raw(separator)}${right}`)
}

/** Returns the text with placeholders; `placeholder` gets the number of each value, counted from 1. */
export function bound(statement: Statement, placeholder: (n: number) => string): string {
  return statement.parts.reduce((text, part, i) => text + placeholder(i) + part)
}

/**
 * Returns the text with its values inlined, for drivers and mappers whose placeholders differ, and for several statements in
 * one message. `literal` must quote any string safely.
 */
export function inlined(statement: Statement, literal: (value: string) => string): string {
  return statement.parts.reduce((text, part, i) => text + literal(String(statement.values[i - 1])) + part)
}

/** Printable ASCII without quote, backslash and question mark: safe between quotes under any settings of the session, and for mappers. */
const PLAIN = /^[ !"#-&(->@-[\]-~]*$/

export function isPlain(value: string): boolean {
  return PLAIN.test(value)
}

export function hexOf(value: string): string {
  return Array.from(new TextEncoder().encode(value), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
