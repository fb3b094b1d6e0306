/** Filters and updates of MongoDB, as far as the tests need them. Values are as bson reads them with `useBigInt64`. */

export type Document = Record<string, unknown>

export class CommandError extends Error {
  readonly code: number
  readonly extra: Document
  constructor(code: number, message: string, extra: Document = {}) {
    super(message)
    this.code = code
    this.extra = extra
  }
}

export function get(document: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => (at as Document | undefined)?.[name], document)
}

export function matches(filter: Document, document: Document): boolean {
  return Object.entries(filter).every(([name, wanted]) => {
    if (name === '$and') return (wanted as Document[]).every((one) => matches(one, document))
    if (name === '$or') return (wanted as Document[]).some((one) => matches(one, document))
    const value = get(document, name)
    if (!isOperators(wanted)) return same(value, wanted)
    return Object.entries(wanted as Document).every(([operator, operand]) => holds(value, operator, operand))
  })
}

function isOperators(wanted: unknown): boolean {
  return typeof wanted === 'object' && wanted !== null && Object.keys(wanted).some((name) => name.startsWith('$'))
}

function holds(value: unknown, operator: string, operand: unknown): boolean {
  switch (operator) {
    case '$exists':
      return (value !== undefined) === operand
    case '$lte':
      // JavaScript compares bigint and number exactly, as MongoDB compares its integers and doubles.
      return isNumber(value) && isNumber(operand) && value <= operand
    default:
      throw new CommandError(2, `unknown operator: ${operator}`)
  }
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

function same(value: unknown, wanted: unknown): boolean {
  if (wanted === null) return value === null || value === undefined
  return textOf(value) === textOf(wanted)
}

export function textOf(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? `${one}n` : one)) ?? 'undefined'
}

/** The document after an update with operators, or after a replacement. */
export function updated(update: Document, document: Document): Document {
  if (!Object.keys(update).some((name) => name.startsWith('$'))) return { _id: document._id, ...update }
  const next = structuredClone(document)
  const touched: string[] = []
  for (const [operator, fields] of Object.entries(update)) {
    for (const [path, value] of Object.entries(fields as Document)) {
      if (touched.some((other) => other === path || other.startsWith(`${path}.`) || path.startsWith(`${other}.`))) {
        throw new CommandError(40, `Updating the path '${path}' would create a conflict at '${path}'`)
      }
      touched.push(path)
      if (operator === '$set') put(next, path, value)
      else if (operator === '$inc') put(next, path, Number(get(next, path) ?? 0) + Number(value))
      else if (operator === '$unset') delete next[path]
      else throw new CommandError(9, `Unknown modifier: ${operator}`)
    }
  }
  return next
}

function put(document: Document, path: string, value: unknown): void {
  const names = path.split('.')
  const last = names.pop() as string
  let at = document
  for (const name of names) at = (at[name] ??= {}) as Document
  at[last] = value
}
