/** Values and expressions of DynamoDB, as far as the tests need them. */

export type Value = Record<string, unknown> & { N?: string; S?: string }
export type Item = Record<string, Value>

export class ValidationError extends Error {}

interface Names {
  names: Record<string, string>
  values: Record<string, Value>
}

/** Evaluates `attribute_exists`, `attribute_not_exists`, comparisons, AND, OR, NOT and parentheses; and SET, REMOVE and ADD. */
export class Expressions {
  readonly #names: Names
  #tokens: string[] = []
  readonly used = new Set<string>()

  constructor(names: Record<string, string> | undefined, values: Record<string, Value> | undefined) {
    this.#names = { names: names ?? {}, values: values ?? {} }
  }

  condition(text: string, item: Item): boolean {
    this.#tokens = tokensOf(text)
    const result = this.#or(item)
    if (this.#tokens.length > 0) throw new ValidationError(`syntax error near ${this.#tokens[0]}`)
    return result
  }

  update(text: string, item: Item): Item {
    this.#tokens = tokensOf(text)
    const next = { ...item }
    const seen = new Set<string>()
    while (this.#tokens.length > 0) {
      const clause = this.#tokens.shift()?.toUpperCase() as string
      if (seen.has(clause)) throw new ValidationError(`two ${clause} clauses`)
      seen.add(clause)
      do this.#action(clause, item, next)
      while (this.#take(','))
    }
    return next
  }

  /** DynamoDB refuses names and values that no expression uses. */
  checkAllUsed(): void {
    for (const name of [...Object.keys(this.#names.names), ...Object.keys(this.#names.values)]) {
      if (!this.used.has(name)) throw new ValidationError(`${name} is unused in expressions`)
    }
  }

  #action(clause: string, item: Item, next: Item): void {
    const path = this.#name()
    if (clause === 'REMOVE') delete next[path]
    else if (clause === 'ADD') next[path] = add(next[path] ?? { N: '0' }, this.#operand(item) as Value, 1n)
    else if (clause === 'SET') {
      if (!this.#take('=')) throw new ValidationError('SET needs =')
      let value = this.#operand(item)
      for (const [sign, factor] of [
        ['+', 1n],
        ['-', -1n],
      ] as const) {
        if (this.#take(sign)) value = add(value as Value, this.#operand(item) as Value, factor)
      }
      if (value === undefined) throw new ValidationError('the expression refers to an attribute that does not exist')
      next[path] = value
    } else throw new ValidationError(`no clause ${clause}`)
  }

  #or(item: Item): boolean {
    let result = this.#and(item)
    while (this.#take('OR')) result = this.#and(item) || result
    return result
  }

  #and(item: Item): boolean {
    let result = this.#not(item)
    while (this.#take('AND')) result = this.#not(item) && result
    return result
  }

  #not(item: Item): boolean {
    if (this.#take('NOT')) return !this.#not(item)
    if (this.#take('(')) {
      const result = this.#or(item)
      if (!this.#take(')')) throw new ValidationError('a ) is missing')
      return result
    }
    for (const [name, exists] of [
      ['attribute_exists', true],
      ['attribute_not_exists', false],
    ] as const) {
      if (!this.#take(name)) continue
      this.#tokens.shift()
      const path = this.#name()
      this.#tokens.shift()
      return path in item === exists
    }
    const left = this.#operand(item)
    const operator = this.#tokens.shift() as string
    return compare(left, operator, this.#operand(item))
  }

  #operand(item: Item): Value | undefined {
    if (this.#take('if_not_exists')) {
      this.#tokens.shift()
      const path = this.#name()
      this.#tokens.shift()
      const otherwise = this.#operand(item)
      this.#tokens.shift()
      return item[path] ?? otherwise
    }
    if (!this.#tokens[0]?.startsWith(':')) return item[this.#name()]
    const name = this.#tokens.shift() as string
    this.used.add(name)
    const value = this.#names.values[name]
    if (value === undefined) throw new ValidationError(`the value ${name} is not defined`)
    return value
  }

  #name(): string {
    const token = this.#tokens.shift() ?? ''
    if (!token.startsWith('#')) return token
    this.used.add(token)
    const name = this.#names.names[token]
    if (name === undefined) throw new ValidationError(`the name ${token} is not defined`)
    return name
  }

  #take(token: string): boolean {
    if (this.#tokens[0]?.toUpperCase() !== token.toUpperCase()) return false
    this.#tokens.shift()
    return true
  }
}

function tokensOf(text: string): string[] {
  return text.match(/[#:]?[\w.]+|<>|<=|>=|[=<>(),+-]/g) ?? []
}

function add(a: Value, b: Value, factor: bigint): Value {
  return { N: (BigInt(a.N as string) + factor * BigInt(b.N as string)).toString() }
}

/** Numbers are compared with all their digits; values of different types are never equal, less or greater. */
function compare(a: Value | undefined, operator: string, b: Value | undefined): boolean {
  if (a === undefined || b === undefined) return operator === '<>' && a !== b
  const [typeA, typeB] = [Object.keys(a)[0], Object.keys(b)[0]]
  if (typeA !== typeB) return operator === '<>'
  const [x, y] = a.N === undefined ? [JSON.stringify(a), JSON.stringify(b)] : [BigInt(a.N), BigInt(b.N as string)]
  switch (operator) {
    case '=':
      return x === y
    case '<>':
      return x !== y
    case '<':
      return x < y
    case '<=':
      return x <= y
    case '>':
      return x > y
    case '>=':
      return x >= y
    default:
      throw new ValidationError(`no operator ${operator}`)
  }
}
