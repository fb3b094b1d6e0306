import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rounded } from './closed-loop.js'

const FOLDER = fileURLToPath(new URL('../results/', import.meta.url))

/** Several rounds of one figure. */
export interface Spread {
  readonly min: number
  readonly median: number
  readonly max: number
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (place: number): number => rounded(sorted[place] as number)
  return { min: at(0), median: at(sorted.length >> 1), max: at(sorted.length - 1) }
}

/** What every file of results says about the machine. */
export function machine() {
  return {
    measuredAt: new Date().toISOString(),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    processors: cpus().length,
    model: cpus()[0]?.model ?? 'unknown',
  }
}

/** Writes `bench/results/NAME.json`. */
export function writeResults(name: string, value: object): string {
  mkdirSync(FOLDER, { recursive: true })
  const file = join(FOLDER, `${name}.json`)
  writeFileSync(file, `${JSON.stringify({ ...machine(), ...value }, undefined, 2)}\n`)
  return file
}

export function readResults<T>(name: string): T {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as T
}
