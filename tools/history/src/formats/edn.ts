import { HistoryError, nameOf, type Value, valueText } from '@leasehold/lab'

/** A form of an EDN text and the line where it begins. */
export interface EdnForm {
  readonly line: number
  readonly value: Value
}

const MAX_DEPTH = 64
const DELIMITER = /[\s,"()[\]{};]/
const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', '#{': '}' }
const NAMED_CHARACTERS: Readonly<Record<string, string>> = {
  newline: '\n',
  space: ' ',
  tab: '\t',
  return: '\r',
  backspace: '\b',
  formfeed: '\f',
}
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '"': '"', '\\': '\\' }

/**
 * Reads EDN, the data notation of Clojure, as far as histories use it: lists, vectors and sets become arrays, maps become
 * maps whose keys lose their colon, keywords and symbols become texts (a keyword keeps its colon), tags and metadata are
 * skipped and leave the value that they are about. `#jepsen.independent.Tuple[key value]` stays a pair.
 */
export class EdnReader {
  #at = 0
  #line: number

  readonly #text: string

  constructor(text: string, firstLine = 1) {
    this.#text = text
    this.#line = firstLine
  }

  /** The forms of the text; a text that is one list or vector gives its elements. */
  elements(): EdnForm[] {
    const forms: EdnForm[] = []
    for (let character = this.#skip(); character !== undefined; character = this.#skip()) {
      if ((character === '[' || character === '(') && forms.length === 0) {
        const first = { line: this.#line, value: null }
        this.#at++
        const items = this.#sequence(CLOSERS[character] as string, first.line, 1)
        if (this.#skip() === undefined) return items
        forms.push({ line: first.line, value: items.map(({ value }) => value) })
      } else {
        forms.push(this.#form(0))
      }
    }
    return forms
  }

  /** The next form, or undefined at the end. */
  next(): EdnForm | undefined {
    return this.#skip() === undefined ? undefined : this.#form(0)
  }

  #form(depth: number): EdnForm {
    const character = this.#skip()
    const line = this.#line
    if (character === undefined) throw new HistoryError('the text ends where a value should be', line)
    if (depth > MAX_DEPTH) throw new HistoryError(`values nested deeper than ${MAX_DEPTH}`, line)
    if (character === '[' || character === '(') {
      this.#at++
      const items = this.#sequence(CLOSERS[character] as string, line, depth + 1)
      return { line, value: items.map(({ value }) => value) }
    }
    if (character === '{') {
      this.#at++
      return { line, value: this.#map(line, depth + 1) }
    }
    if (character === '"') return { line, value: this.#string() }
    if (character === '\\') return { line, value: this.#character() }
    if (character === '#') return { line, value: this.#dispatch(depth) }
    if (character === "'" || character === '^') {
      this.#at++
      if (character === '^') this.#form(depth + 1)
      return this.#form(depth + 1)
    }
    if (/[\])}]/.test(character)) throw new HistoryError(`${character} closes nothing`, line)
    return { line, value: atom(this.#word(), line) }
  }

  #sequence(closer: string, openedAt: number, depth: number): EdnForm[] {
    const items: EdnForm[] = []
    for (;;) {
      const character = this.#skip()
      if (character === undefined) throw new HistoryError(`no ${closer} for what line ${openedAt} opens`, this.#line)
      if (character === closer) {
        this.#at++
        return items
      }
      items.push(this.#form(depth))
    }
  }

  #map(line: number, depth: number): ReadonlyMap<string, Value> {
    const items = this.#sequence('}', line, depth)
    if (items.length % 2 !== 0) throw new HistoryError('a map with a key and no value', line)
    const map = new Map<string, Value>()
    for (let i = 0; i < items.length; i += 2) {
      const key = items[i]?.value
      map.set(nameOf(key) ?? valueText(key), items[i + 1]?.value ?? null)
    }
    return map
  }

  /** What begins with `#`: a set, a discarded form, a special number, or a tag. */
  #dispatch(depth: number): Value {
    const line = this.#line
    this.#at++
    const character = this.#text[this.#at]
    if (character === '{') {
      this.#at++
      return this.#sequence('}', line, depth + 1).map(({ value }) => value)
    }
    if (character === '#') {
      this.#at++
      return `##${this.#word()}`
    }
    this.#word()
    return this.#form(depth + 1).value
  }

  #string(): string {
    const line = this.#line
    let text = ''
    for (this.#at++; ; this.#at++) {
      const character = this.#text[this.#at]
      if (character === undefined) throw new HistoryError('a text without an end', line)
      if (character === '\n') this.#line++
      if (character === '"') {
        this.#at++
        return text
      }
      text += character === '\\' ? this.#escape(line) : character
    }
  }

  #escape(line: number): string {
    const character = this.#text[++this.#at] ?? ''
    if (character === 'u') {
      const code = this.#text.slice(this.#at + 1, this.#at + 5)
      if (!/^[0-9a-fA-F]{4}$/.test(code)) throw new HistoryError('\\u needs four hexadecimal digits', line)
      this.#at += 4
      return String.fromCharCode(Number.parseInt(code, 16))
    }
    const escaped = ESCAPES[character]
    if (escaped === undefined) throw new HistoryError(`unknown escape \\${character}`, line)
    return escaped
  }

  #character(): string {
    this.#at++
    const first = this.#text[this.#at] ?? ''
    this.#at++
    const name = first + this.#word()
    return NAMED_CHARACTERS[name] ?? name
  }

  /** Everything up to the next delimiter. */
  #word(): string {
    const begin = this.#at
    while (this.#at < this.#text.length && !DELIMITER.test(this.#text[this.#at] as string)) this.#at++
    return this.#text.slice(begin, this.#at)
  }

  /** Skips blanks, commas, comments and discarded forms; the next character, or undefined at the end. */
  #skip(): string | undefined {
    for (;;) {
      const character = this.#text[this.#at]
      if (character === undefined) return undefined
      if (character === ';') {
        while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++
      } else if (character === '#' && this.#text[this.#at + 1] === '_') {
        this.#at += 2
        this.#form(1)
      } else if (character === ',' || character === '\uFEFF' || /\s/.test(character)) {
        if (character === '\n') this.#line++
        this.#at++
      } else {
        return character
      }
    }
  }
}

function atom(word: string, line: number): Value {
  if (word === 'nil') return null
  if (word === 'true') return true
  if (word === 'false') return false
  if (/^[+-]?\d+N?$/.test(word)) return integer(word.replace(/^\+|N$/g, ''))
  if (/^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?M?$/.test(word)) return Number(word.replace(/M$/, ''))
  if (/^[+-]?\d+\/\d+$/.test(word)) return word
  if (/^[+-]?\d/.test(word)) throw new HistoryError(`not a number: ${word.slice(0, 40)}`, line)
  if (word === '' || word === ':') throw new HistoryError('a name without letters', line)
  return word.startsWith('::') ? word.slice(1) : word
}

function integer(digits: string): number | bigint {
  const number = Number(digits)
  return Number.isSafeInteger(number) ? number : BigInt(digits)
}
