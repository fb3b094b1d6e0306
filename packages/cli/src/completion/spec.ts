import type { Command } from 'commander'

/** One command, as a completion script needs it. */
export interface Spec {
  /** `leasehold cluster add` is `['cluster', 'add']`. */
  readonly path: readonly string[]
  readonly commands: readonly Word[]
  readonly options: readonly OptionSpec[]
  /** The possible values of the first argument; `'file'` for any file. */
  readonly argument: readonly string[] | 'file' | undefined
}

export interface Word {
  readonly word: string
  readonly text: string
}

export interface OptionSpec {
  readonly words: readonly string[]
  readonly text: string
  /** The possible values, a file, or anything. Undefined for a switch. */
  readonly value: readonly string[] | 'file' | 'any' | undefined
}

/** Returns all commands of the program, from commander's definitions. */
export function specsOf(program: Command): Spec[] {
  const specs: Spec[] = []
  const visit = (command: Command, path: readonly string[]): void => {
    specs.push(specOf(command, path))
    for (const child of command.commands) visit(child, [...path, child.name()])
  }
  visit(program, [])
  return specs
}

function specOf(command: Command, path: readonly string[]): Spec {
  const help = command.createHelp()
  const [first] = command.registeredArguments
  return {
    path,
    commands: command.commands.map((child) => ({ word: child.name(), text: oneLine(child.description()) })),
    options: help.visibleOptions(command).map(({ short, long, description, flags, argChoices }) => ({
      words: [long, short].filter((word) => word !== undefined),
      text: oneLine(description),
      value: flags.includes('<') || flags.includes('[') ? (argChoices ?? kindOf(flags)) : undefined,
    })),
    argument: first === undefined ? undefined : (first.argChoices ?? (isFile(first.name()) ? 'file' : undefined)),
  }
}

function kindOf(flags: string): 'file' | 'any' {
  return isFile(/[<[](.*)[>\]]/.exec(flags)?.[1] ?? '') ? 'file' : 'any'
}

function isFile(placeholder: string): boolean {
  return /\b(file|dir)\b/.test(placeholder)
}

/** Joins the lines of a text: shells show it in one column. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
