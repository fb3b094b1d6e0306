// Import cycles, types included: files that import each other, directly or by others.
import { resolveImport, walk } from './sources.mjs'

/** For each file the files that it imports. `sisters`: the file behind each package specifier, such as `@leasehold/core`. */
export function importGraph(files, sisters = new Map()) {
  const paths = new Set(files.map((file) => file.path))
  return new Map(
    files.map(({ path, program }) => {
      const targets = new Set()
      walk(program, (node) => {
        const specifier = specifierOf(node)
        if (specifier === undefined) return
        const target = specifier.startsWith('.') ? resolveImport(path, specifier, paths) : sisters.get(specifier)
        if (target !== undefined) targets.add(target)
      })
      return [path, targets]
    }),
  )
}

function specifierOf(node) {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
    case 'ImportExpression':
    case 'TSImportType': {
      const value = node.source?.value
      return typeof value === 'string' ? value : undefined
    }
    default:
      return undefined
  }
}

/** Groups of files of which each reaches all others (Tarjan's strongly connected components, without single files). */
export function cyclesOf(graph) {
  const cycles = []
  const numbers = new Map()
  const lows = new Map()
  const stack = []
  const onStack = new Set()
  const visit = (file) => {
    numbers.set(file, numbers.size)
    lows.set(file, numbers.get(file))
    stack.push(file)
    onStack.add(file)
    for (const target of graph.get(file) ?? []) {
      if (!numbers.has(target)) {
        visit(target)
        lows.set(file, Math.min(lows.get(file), lows.get(target)))
      } else if (onStack.has(target)) lows.set(file, Math.min(lows.get(file), numbers.get(target)))
    }
    if (lows.get(file) !== numbers.get(file)) return
    const group = stack.splice(stack.indexOf(file))
    for (const member of group) onStack.delete(member)
    if (group.length > 1 || graph.get(file)?.has(file)) cycles.push(group.sort((a, b) => (a < b ? -1 : 1)))
  }
  for (const file of graph.keys()) if (!numbers.has(file)) visit(file)
  return cycles
}

/** A shortest way from a file of a cycle back to it, for the message. */
export function loopOf(graph, group) {
  const inside = new Set(group)
  const [start] = group
  const before = new Map()
  const queue = [start]
  for (const file of queue) {
    for (const target of graph.get(file)) {
      if (!inside.has(target)) continue
      if (target === start) {
        const loop = [start]
        for (let at = file; at !== start; at = before.get(at)) loop.unshift(at)
        return [start, ...loop]
      }
      if (!before.has(target)) {
        before.set(target, file)
        queue.push(target)
      }
    }
  }
  return group
}
