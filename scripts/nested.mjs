// Workspaces of their own, spec/ and some inside tests/, with a package.json and a lock file: SDKs, drivers and frameworks that only their
// tests need. They stay out of the main `npm ci`. `node scripts/nested.mjs` installs them by hand.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { root, runMain } from './setup.mjs'

/** Of one attempt. A second one follows when the first has failed: a registry may be out of reach for a moment. */
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

/** Whether a nested workspace has what its lock file asks for. */
export function isNestedInstalled(folder) {
  const stamp = stampOf(folder)
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockOf(folder)
}

/** Installs what is missing; answers the folders that could not be installed, with the reason. */
export function ensureNested(folders = nestedWorkspaces()) {
  const missing = []
  for (const folder of folders) {
    if (isNestedInstalled(folder)) continue
    if (process.env.LEASEHOLD_NO_NESTED) {
      missing.push({ folder, why: 'not installed, and installing is switched off' })
      continue
    }
    const why = install(folder)
    if (why === undefined) writeFileSync(stampOf(folder), lockOf(folder))
    else missing.push({ folder, why })
  }
  return missing
}

/** Why it could not be installed; undefined when it was. */
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
    console.error(`installing the packages of ${folder} (npm ci)${why === undefined ? '' : ` once more: ${why}`}`)
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
