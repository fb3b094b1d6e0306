import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

test.each(['docs/architecture.md', 'spec/README.md', 'CONTRIBUTING.md'])('%s names files that exist', (page) => {
  const text = readFileSync(`${root}${page}`, 'utf8')
  const paths = [...text.matchAll(/`((?:packages|tests|tools|scripts|docs|spec|bench|deploy)\/[\w./-]+)`/g)].map(
    ([, path]) => path as string,
  )
  expect(paths.filter((path) => !existsSync(root + path))).toEqual([])
  if (page === 'docs/architecture.md') expect(paths.length).toBeGreaterThan(40)
})
