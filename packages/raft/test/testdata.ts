import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Test data of other projects, which is beside this project and read in place. */
const FOLDER = fileURLToPath(new URL('../../../../shared/testdata/', import.meta.url))

export const HAS_TESTDATA = existsSync(FOLDER)
/** For the names of suites, so that a skipped one says what was missing. */
export const WHERE = HAS_TESTDATA ? '' : ' (skipped: no shared/testdata beside the project)'

export function filesIn(folder: string): string[] {
  if (!HAS_TESTDATA) return []
  return readdirSync(FOLDER + folder)
    .filter((name) => !name.startsWith('.'))
    .sort()
    .map((name) => `${folder}/${name}`)
}

export function textOf(file: string): string {
  return readFileSync(FOLDER + file, 'utf8')
}
