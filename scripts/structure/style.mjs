// Private members are `#x`: neither `private` nor `protected`, and no `_x`.
import { lineAt, walk } from './sources.mjs'

const MEMBERS = new Set([
  'PropertyDefinition',
  'AccessorProperty',
  'MethodDefinition',
  'TSAbstractPropertyDefinition',
  'TSAbstractMethodDefinition',
  'TSParameterProperty',
])

/** Members of classes that are private in another way. */
export function privateMembers({ text, program }) {
  const found = []
  walk(program, (node) => {
    if (!MEMBERS.has(node.type)) return
    const key = node.type === 'TSParameterProperty' ? (node.parameter.left ?? node.parameter) : node.key
    const word = ['private', 'protected'].find((one) => node.accessibility === one)
    if (word !== undefined) found.push({ line: lineAt(text, node.start), what: `${word} ${key.name}` })
    else if (key.type === 'Identifier' && key.name.startsWith('_')) {
      found.push({ line: lineAt(text, node.start), what: key.name })
    }
  })
  return found
}
