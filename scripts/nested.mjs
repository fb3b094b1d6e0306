// Nested workspaces, spec/ and some inside tests/, with their own package.json and lock file: SDKs, drivers and frameworks that
// only their tests need. They are not part of the main `npm ci`. `node scripts/nested.mjs` installs them.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { root, runMain } from './setup.mjs'

/** Bound on one attempt. There is a second one, because a registry may be unreachable for a moment. */
const INSTALL_TIMEOUT_MS = 300_000
const INSTALL_ATTEMPTS = 2

/** The folders of the nested workspaces, such as `tests/cloud`. */
export function nestedWorkspaces() {
  return ['spec', ...readdirSync(`${root}tests`).map((name) => `tests/${name}`)].filter((folder) =>
    existsSync(`${root}${folder}/package-lock.json`),
  )
}

const stampOf = (folder) => `${root}${folder}/node_modules/.leasehold-installed`

function lockOf(folder) {
  const lock = readFileSync(`${root}${folder}/package-lock.json`, 'utf8')
  return createHash('sha256').update(lock).digest('hex')
}

/** Whether the installed packages of a nested workspace match its lock file. */
export function isNestedInstalled(folder) {
  const stamp = stampOf(folder)
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockOf(folder)
}

/** Installs what is missing; returns the folders that could not be installed, with the reason. */
export function ensureNested(folders = nestedWorkspaces()) {
  const missing = []
  for (const folder of folders) {
    if (isNestedInstalled(folder)) continue
    if (process.env.LEASEHOLD_NO_NESTED) {
      missing.push({ folder, why: 'not installed, and installation is disabled' })
      continue
    }
    const why = install(folder)
    if (why === undefined) writeFileSync(stampOf(folder), lockOf(folder))
    else missing.push({ folder, why })
  }
  return missing
}

/** Installs one workspace; returns the reason of a failure. */
function install(folder) {
  const npm = process.env.npm_execpath
  const [command, args] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []]
  const options = [
    'ci',
    '--no-workspaces',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--loglevel=error',
  ]
  let why
  for (let attempt = 1; attempt <= INSTALL_ATTEMPTS; attempt++) {
    console.error(`installing the packages of ${folder} (npm ci)${why === undefined ? '' : `, second attempt: ${why}`}`)
    const child = spawnSync(command, [...args, ...options], {
      cwd: `${root}${folder}`,
      encoding: 'utf8',
      timeout: INSTALL_TIMEOUT_MS,
    })
    if (child.status === 0) return undefined
    why = lastLine(child)
  }
  return why
}

function lastLine({ error, stdout, stderr }) {
  if (error) return error.message
  return (
    `${stdout}${stderr}`
      .trim()
      .split('\n')
      .find((line) => line.includes('error')) ?? 'npm ci failed'
  )
}

if (process.argv[1] === import.meta.filename) {
  await runMain(() => {
    const missing = ensureNested()
    for (const { folder, why } of missing) console.error(`${folder}: ${why}`)
    return missing.length > 0 ? 1 : 0
  })
}
