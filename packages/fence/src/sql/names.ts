import { InvalidError, nameProblem } from '@leasehold/core'

export const GUARD_TABLE = 'leasehold_guard'
export const FLOOR_TABLE = 'leasehold_guard_floor'

/** PostgreSQL truncates longer names; MySQL rejects names of more than 64 characters. */
const IDENTIFIER_LENGTH_MAX = 63

export type Quote = '"' | '`'

/** Quotes an identifier. @throws InvalidError */
export function identifier(name: unknown, quote: Quote = '"'): string {
  if (typeof name !== 'string' || name.length > IDENTIFIER_LENGTH_MAX || nameProblem(name) !== undefined) {
    throw new InvalidError(`not a name of a table, column or schema: ${JSON.stringify(name)}`)
  }
  return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`
}

/** Quotes a table's name with its schema. The name itself may be `schema.table`. */
export function tableName(table: string, schema?: string, quote: Quote = '"'): string {
  if (schema !== undefined) return `${identifier(schema, quote)}.${identifier(table, quote)}`
  if (typeof table !== 'string') return identifier(table, quote)
  return table
    .split('.')
    .map((part) => identifier(part, quote))
    .join('.')
}
