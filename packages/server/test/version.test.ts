import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { VERSION } from '../src/version.js'

test('VERSION is that of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  expect(VERSION).toBe(version)
})
