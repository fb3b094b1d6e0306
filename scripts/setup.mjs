// The first step of every npm script: installs and builds what is missing or out of date.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { removeStaleOutputs } from './stale-outputs.mjs'

export const root = fileURLToPath(new URL('..', import.meta.url))

const stampFile = `${root}node_modules/.leasehold-installed`

/** Runs a tool of node_modules with this Node; returns its exit code. */
export function runTool(script, args, options = {}) {
  const child = spawnSync(process.execPath, [`${root}node_modules/${script}`, ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    ...options,
  })
  if (child.error) throw child.error
  return child.status ?? 1
}

/** A registry may be unreachable for a moment. */
const INSTALL_ATTEMPTS = 2

/** Installs with `npm ci` if node_modules is missing or does not match package-lock.json. */
export function ensureInstalled() {
  const lock = readFileSync(`${root}package-lock.json`, 'utf8')
  const stamp = createHash('sha256').update(lock).digest('hex')
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return
  if (!fits(JSON.parse(lock))) {
    const npm = process.env.npm_execpath
    const [command, args] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []]
    let isInstalled = false
    for (let attempt = 1; attempt <= INSTALL_ATTEMPTS && !isInstalled; attempt++) {
      console.error(`installing packages (npm ci)${attempt === 1 ? '' : ', second attempt: see above'}`)
      const child = spawnSync(command, [...args, 'ci', '--no-audit', '--no-fund'], {
        cwd: root,
        stdio: ['ignore', 'inherit', 'inherit'],
      })
      isInstalled = child.status === 0
    }
    if (!isInstalled) throw new Error('npm ci failed: see above')
  }
  writeFileSync(stampFile, stamp)
}

/** Whether the installed packages match the lock file. */
function fits(lock) {
  const hidden = `${root}node_modules/.package-lock.json`
  if (!existsSync(hidden)) return false
  const installed = JSON.parse(readFileSync(hidden, 'utf8')).packages
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (!path.startsWith('node_modules/') || wanted.optional || wanted.link) return true
    return installed[path]?.version === wanted.version
  })
}

/** Builds all packages and pages, as far as they are out of date. Throws if a package has errors. */
export function ensureBuilt() {
  if (!existsSync(`${root}packages/cli/dist/bin.js`)) console.error('building (tsc -b)')
  removeStaleOutputs(root)
  if (runTool('typescript/bin/tsc', ['-b']) !== 0) throw new Error('the build failed: see above')
  ensureConsole()
  if (runTool('../packages/lab/page/build.mjs', []) !== 0)
    throw new Error('the page of the lab was not built: see above')
}

/** Builds the page that the server serves at `/`, if a source of it has changed. */
export function ensureConsole() {
  const folder = `${root}packages/console/`
  const page = `${root}packages/server/dist/console/index.html`
  const stampFile = `${folder}dist/.built`
  const stamp = consoleStamp(folder)
  if (existsSync(page) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return
  // Its output goes to stderr, because stdout belongs to the command.
  const child = spawnSync(process.execPath, [`${folder}build.mjs`], { stdio: ['ignore', 2, 'inherit'] })
  if (child.status !== 0) throw new Error('the build of the console failed: see above')
  mkdirSync(`${folder}dist`, { recursive: true })
  writeFileSync(stampFile, stamp)
}

/** A hash of the sources of the console and of its dependencies. */
function consoleStamp(folder) {
  const sources = readdirSync(`${folder}src`, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  const hash = createHash('sha256').update(readFileSync(`${root}package-lock.json`))
  for (const file of [`${folder}build.mjs`, `${folder}index.html`, ...sources.sort()]) {
    hash.update(file.slice(root.length)).update(readFileSync(file))
  }
  return hash.digest('hex')
}

/** Runs the `main` of a script: an error is one line and exit code 1. */
export async function runMain(main) {
  try {
    const [major, minor] = process.versions.node.split('.').map(Number)
    if (major < 20 || (major === 20 && minor < 19)) {
      throw new Error(`this is Node ${process.versions.node}; Leasehold needs 20.19 or later`)
    }
    process.exitCode = (await main()) ?? 0
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}
