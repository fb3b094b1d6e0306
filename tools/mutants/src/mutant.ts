import type { Profile } from '@leasehold/lab'

/** One place of a file that reads differently in a mutant. */
export interface Patch {
  /** Below the folder of the packages: a built file such as `raft/dist/election.js`, or a source such as `client/src/hold.ts`. */
  readonly file: string
  /** Must be there exactly once. */
  readonly find: string
  readonly replace: string
}

/** A known bug, put back into the code that the lab runs. Production code knows nothing of it. */
export interface Mutant {
  /** Package, and what is wrong. */
  readonly id: string
  /** The bug, for people. */
  readonly bug: string
  readonly patches: readonly Patch[]
  /** Tests of the function itself, as files below the folder of the packages: one of them must fail. */
  readonly tests?: readonly string[]
  /** A pattern for the names of those tests; default: all in these files. */
  readonly testName?: string
  /** Scenarios that are made for such a bug: they are played first. */
  readonly scenarios?: readonly string[]
  /** The explorer's profile in which its seeds are counted; default `swarm`. */
  readonly profile?: Profile
  readonly members?: number
}

/** Whether a mutant patches sources: then only its own tests hunt it, as the lab runs on built files. */
export function patchesSources({ patches }: Mutant): boolean {
  return patches.some(({ file }) => file.includes('/src/'))
}

/** Shorthand for the lists: a mutant of one package, with patches of its built files. */
export function mutantsOf(
  folder: string,
  list: readonly (Omit<Mutant, 'id' | 'patches'> & {
    readonly name: string
    readonly patches: readonly (readonly [file: string, find: string, replace: string])[]
  })[],
): Mutant[] {
  return list.map(({ name, patches, ...more }) => ({
    id: `${folder}/${name}`,
    ...more,
    patches: patches.map(([file, find, replace]) => ({ file: fileOf(folder, file), find, replace })),
  }))
}

/** `election` is a file of the package itself, `core:state/holds` one of another. */
function fileOf(folder: string, file: string): string {
  const [other, path] = file.includes(':') ? (file.split(':') as [string, string]) : [folder, file]
  return `${other}/dist/${path}.js`
}
