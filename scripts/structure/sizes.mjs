// Long functions and long files.
import { lineAt, walk } from './sources.mjs'

export const MAX_FUNCTION_LINES = 60
export const MAX_FILE_LINES = 500

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** The functions of a file with more than `max` lines, by name; an outer function counts with what is in it. */
export function longFunctions({ text, program }, max = MAX_FUNCTION_LINES) {
  const found = []
  walk(program, (node, parents) => {
    if (!FUNCTIONS.has(node.type)) return
    const line = lineAt(text, node.start)
    const lines = lineAt(text, node.end) - line + 1
    if (lines > max) found.push({ name: nameOf(node, parents), line, lines })
  })
  return found
}

function nameOf(node, parents) {
  if (node.id) return node.id.name
  const parent = parents.at(-1)
  switch (parent?.type) {
    case 'MethodDefinition':
    case 'PropertyDefinition':
    case 'Property':
      return parent.key.type === 'PrivateIdentifier' ? `#${parent.key.name}` : (parent.key.name ?? parent.key.value)
    case 'VariableDeclarator':
      return parent.id.name ?? 'anonymous'
    case 'AssignmentExpression':
      return parent.left.property?.name ?? parent.left.name ?? 'anonymous'
    case 'ExportDefaultDeclaration':
      return 'default'
    case 'CallExpression':
      return `argument of ${parent.callee.property?.name ?? parent.callee.name ?? 'a call'}`
    default:
      return 'anonymous'
  }
}

export function lineCount(text) {
  return text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}
