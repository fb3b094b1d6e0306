import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKey, type KeyEntry } from '@leasehold/server'
import { afterEach, beforeEach } from 'vitest'

/** A key file in a temporary folder of each test. */
export interface KeyFile {
  readonly folder: string
  readonly file: string
  /** Adds a key with these rules. */
  create(...rules: string[]): { readonly text: string; readonly entry: KeyEntry }
}

/** Creates the folder before each test, and removes it after the test. */
export function useKeyFile(): KeyFile {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-keys-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))
  return {
    get folder() {
      return folder
    },
    get file() {
      return join(folder, 'keys.json')
    },
    create(...rules) {
      return createKey(this.file, { name: 'test', rules }, new Date())
    },
  }
}

/** Headers of a JSON request; without a key there are no credentials. */
export function bearer(key: string): Record<string, string> {
  return { 'content-type': 'application/json', ...(key === '' ? {} : { authorization: `Bearer ${key}` }) }
}
