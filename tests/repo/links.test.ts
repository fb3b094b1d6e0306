import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`),
  ...readdirSync(join(root, 'packages'))
    .map((name) => `packages/${name}/README.md`)
    .filter((path) => existsSync(join(root, path))),
]

/** The anchors of a page: its headings, as GitHub names them, and explicit ids. */
function anchorsOf(text: string): Set<string> {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '')
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    (title as string)
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
  return new Set([...headings, ...[...text.matchAll(/<a id="([^"]+)"/g)].map(([, id]) => id as string)])
}

function brokenLinks(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replace(/^```[\s\S]*?^```$/gm, '')
  const broken: string[] = []
  for (const [, target, anchor] of text.matchAll(/\]\(([^)#:\s]*)(?:#([^)\s]+))?\)/g)) {
    const path = target === '' ? page : join(dirname(page), target as string)
    if (!existsSync(join(root, path))) broken.push(path)
    else if (anchor !== undefined && !anchorsOf(readFileSync(join(root, path), 'utf8')).has(anchor)) {
      broken.push(`${path}#${anchor}`)
    }
  }
  return broken
}

describe('the links on the pages', () => {
  it.each(pages)('%s: every link has a target', (page) => {
    expect(brokenLinks(page)).toEqual([])
  })
})
