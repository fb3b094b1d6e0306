import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { InvalidError } from '@leasehold/core'
import type { Mutant, Patch } from './mutant.js'

/** Everything that runs in the lab. */
export const PACKAGES = ['core', 'raft', 'replica', 'client', 'fence', 'lab'] as const

export const PACKAGES_FOLDER = join(import.meta.dirname, '../../../packages')

export interface Copy {
  /** The program that hunts in this copy; see `hunter.ts`. */
  readonly hunter: string
  /** The program that runs the simulation of the consensus core on this copy's core. */
  readonly simulation: string
  remove(): void
}

/** Makes a copy of the built packages with the mutant's patches in it. Without a mutant: an unchanged one. */
export function copyWith(mutant: Mutant | undefined, packages = PACKAGES_FOLDER): Copy {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-mutant-'))
  const home = join(folder, 'node_modules', '@leasehold')
  for (const name of PACKAGES) {
    const built = join(packages, name, 'dist')
    cpSync(built, join(home, name, 'dist'), { recursive: true, filter: (path) => !/\.(d\.ts|map)$/.test(path) })
    cpSync(join(packages, name, 'package.json'), join(home, name, 'package.json'))
  }
  for (const [file, text] of patched(mutant, packages)) writeFileSync(join(home, file), text)
  // The simulation reads the core from `src`, beside it: here that is the copy.
  const simulation = join(folder, 'core', 'test', 'simulation')
  cpSync(join(packages, 'raft', 'test', 'simulation'), simulation, { recursive: true })
  mkdirSync(join(folder, 'core', 'src'))
  writeFileSync(
    join(folder, 'core', 'src', 'index.js'),
    "export * from '../../node_modules/@leasehold/raft/dist/index.js'\n",
  )
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n')
  const hunter = join(folder, 'hunter.ts')
  cpSync(join(import.meta.dirname, 'hunter.ts'), hunter)
  return {
    simulation: join(simulation, 'hunt.ts'),
    hunter,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/**
 * The texts of the files that a mutant changes.
 * @throws InvalidError when a patch does not fit today's code: what it looks for must be there exactly once
 */
export function patched(mutant: Mutant | undefined, packages = PACKAGES_FOLDER): Map<string, string> {
  const texts = new Map<string, string>()
  for (const patch of mutant?.patches ?? []) {
    const text = texts.get(patch.file) ?? readFileSync(join(packages, patch.file), 'utf8')
    texts.set(patch.file, apply(text, patch, mutant?.id ?? ''))
  }
  return texts
}

function apply(text: string, { file, find, replace }: Patch, id: string): string {
  const parts = text.split(find)
  if (parts.length === 2) return parts.join(replace)
  throw new InvalidError(`mutant ${id}: ${JSON.stringify(find)} is ${parts.length - 1} times in ${file}, not once`, {
    hint: `the code has changed: rewrite the patch after a look at packages/${dirname(file)}`,
  })
}
