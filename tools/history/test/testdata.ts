import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Operation } from '@leasehold/lab'
import { parseHistory } from '../src/index.js'

/** Recorded histories live beside the project and are read in place. */
export const TESTDATA = fileURLToPath(new URL('../../../../shared/testdata/', import.meta.url))

export function hasTestdata(folder: string): boolean {
  return existsSync(join(TESTDATA, folder))
}

export function filesOf(folder: string): string[] {
  return readdirSync(join(TESTDATA, folder)).map((name) => join(TESTDATA, folder, name))
}

export function readTestdata(file: string): string {
  return readFileSync(file.startsWith(TESTDATA) ? file : join(TESTDATA, file), 'utf8')
}

export function historyOf(file: string): Operation[] {
  return parseHistory(file, readTestdata(file))
}
