// Bundles the interactive page into packages/lab/dist/page. Does nothing when nothing has changed since the last time.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const packages = fileURLToPath(new URL('../../', import.meta.url))
/** Where the page is served from. */
export const out = fileURLToPath(new URL('../dist/page/', import.meta.url))
const stampFile = join(out, '.stamp')
/** Two processes may build at the same time: each in a folder of its own, and the page is there as a whole or not at all. */
const draft = fileURLToPath(new URL('../dist/.page-', import.meta.url))

/** Files that the page is made of: what tsc has built, and what it has not. */
function inputs() {
  const built = ['core', 'raft', 'replica', 'client', 'engines', 'fence', 'lab'].flatMap((name) => {
    const folder = join(packages, name, 'dist')
    return readdirSync(folder, { recursive: true }).map((file) => join(folder, file))
  })
  const own = ['index.html', 'style.css', 'picture.css', 'build.mjs'].map((name) => join(here, name))
  return [
    ...built.filter((file) => file.endsWith('.js') && !file.startsWith(out) && !file.startsWith(draft)),
    ...own,
  ].sort()
}

function stamp() {
  const hash = createHash('sha256')
  for (const file of inputs()) {
    const { size, mtimeMs } = statSync(file)
    hash.update(`${file.slice(packages.length)} ${size} ${mtimeMs}\n`)
  }
  return hash.digest('hex')
}

/** Builds the page if it is not there, or older than what it is made of. The packages must be built. */
export async function ensurePage({ log = () => {} } = {}) {
  const wanted = stamp()
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wanted) return
  log('building the page of the lab (vite)')
  const { build } = await import('vite')
  const folder = `${draft}${process.pid}`
  await build({
    configFile: false,
    root: here,
    base: './',
    logLevel: 'warn',
    build: { outDir: folder, emptyOutDir: true, target: 'es2022', modulePreload: false, chunkSizeWarningLimit: 2000 },
    // A module of Node in the page is a mistake, and must not become an empty one in silence.
    plugins: [
      {
        name: 'no-node',
        enforce: 'pre',
        resolveId(id, importer) {
          if (id.startsWith('node:')) throw new Error(`${importer} imports ${id}, which a page has not`)
        },
      },
    ],
  })
  writeFileSync(join(folder, '.stamp'), wanted)
  rmSync(out, { recursive: true, force: true })
  try {
    renameSync(folder, out)
  } catch (error) {
    // Another process was faster.
    if (!existsSync(stampFile)) throw error
    rmSync(folder, { recursive: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await ensurePage({ log: (line) => console.error(line) })
