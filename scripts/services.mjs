// Finds the programs that the test suites need besides Node, and installs missing ones on Debian as root.
// Used by scripts/test.mjs; `node scripts/services.mjs [NAMES…]` does the same from the command line.

import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const POLICY = '/usr/sbin/policy-rc.d'
const APT_LOCK_TIMEOUT_SECONDS = 300
/** Bounds on one call of apt, and on one request to a package server and its retries. */
const APT_TIMEOUT_MS = 900_000
const APT_HTTP_TIMEOUT_SECONDS = 60
const APT_RETRIES = 3

function executable(name) {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/bin']) {
    if (folder === '') continue
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      // Not in this folder.
    }
  }
  return false
}

function debianPostgres() {
  const folder = '/usr/lib/postgresql'
  return (
    existsSync(folder) && readdirSync(folder).some((version) => existsSync(join(folder, version, 'bin', 'postgres')))
  )
}

/** Each service: whether it is present, and its Debian packages. */
export const SERVICES = {
  PostgreSQL: {
    present: () => debianPostgres() || (executable('initdb') && executable('postgres')),
    packages: ['postgresql'],
  },
  Redis: { present: () => executable('redis-server') || executable('valkey-server'), packages: ['redis-server'] },
  etcd: { present: () => executable('etcd'), packages: ['etcd-server', 'etcd-client'] },
  MariaDB: { present: () => executable('mariadbd'), packages: ['mariadb-server'] },
  OpenSSL: { present: () => executable('openssl'), packages: ['openssl'] },
  PgBouncer: { present: () => executable('pgbouncer'), packages: ['pgbouncer'] },
  // Its models are compiled.
  Spin: { present: () => executable('spin') && executable('cc'), packages: ['spin', 'gcc', 'libc6-dev'] },
  // For promtool, which checks metrics and alerts.
  Prometheus: { present: () => executable('promtool'), packages: ['prometheus'] },
  Chromium: {
    present: () =>
      Boolean(process.env.LEASEHOLD_CHROMIUM) ||
      ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].some(executable),
    packages: ['chromium'],
  },
}

function isMissing(name) {
  return !SERVICES[name].present()
}

function apt(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  const settings = [
    `DPkg::Lock::Timeout=${APT_LOCK_TIMEOUT_SECONDS}`,
    `Acquire::Retries=${APT_RETRIES}`,
    `Acquire::http::Timeout=${APT_HTTP_TIMEOUT_SECONDS}`,
    `Acquire::https::Timeout=${APT_HTTP_TIMEOUT_SECONDS}`,
  ]
  const all = [...settings.flatMap((setting) => ['-o', setting]), ...args]
  const done = spawnSync('apt-get', all, { encoding: 'utf8', timeout: APT_TIMEOUT_MS, env })
  const problem = done.error === undefined ? '' : `\n${done.error.message}`
  return { ok: done.status === 0, output: `${done.stdout ?? ''}${done.stderr ?? ''}${problem}` }
}

/** Runs `body` while Debian packages start no daemon. An existing policy is left unchanged. */
function withoutDaemons(body) {
  if (existsSync(POLICY)) {
    const policy = spawnSync(POLICY, ['redis-server', 'start'])
    if (policy.status !== 101) return { ok: false, output: `${POLICY} exists and would let the packages start daemons` }
    return body()
  }
  writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    return body()
  } finally {
    rmSync(POLICY, { force: true })
  }
}

/**
 * Ensures that the named services are present. Calls apt only if one is missing, on Debian, as root.
 * @param {readonly string[]} names keys of SERVICES
 * @param {{ log?: (line: string) => void, install?: boolean }} options
 * @returns {{ present: string[], installed: string[], missing: { name: string, why: string }[] }}
 */
export function ensureServices(
  names = ['PostgreSQL', 'Redis', 'etcd', 'MariaDB', 'PgBouncer', 'Prometheus', 'Spin', 'Chromium'],
  options = {},
) {
  const log = options.log ?? (() => {})
  for (const name of names) {
    if (!(name in SERVICES))
      throw new TypeError(`no such service: ${name} (there are ${Object.keys(SERVICES).join(', ')})`)
  }
  const wanted = names.filter(isMissing)
  const present = names.filter((name) => !wanted.includes(name))
  if (wanted.length === 0) return { present, installed: [], missing: [] }

  const packages = wanted.flatMap((name) => SERVICES[name].packages)
  const why = whyNotInstalled(options)
  if (why !== undefined) {
    const hint = `${why}; on Debian: apt-get install ${packages.join(' ')}`
    return { present, installed: [], missing: wanted.map((name) => ({ name, why: hint })) }
  }

  log(`installing ${packages.join(', ')} (no daemon is left running)`)
  const install = ['install', '-y', '-q', '--no-install-recommends', ...packages]
  const result = withoutDaemons(() => {
    const first = apt(install)
    if (first.ok) return first
    const update = apt(['update', '-q'])
    return update.ok ? apt(install) : update
  })
  if (!result.ok) log(result.output.trim().split('\n').slice(-5).join('\n'))
  const still = wanted.filter(isMissing)
  return {
    present,
    installed: wanted.filter((name) => !still.includes(name)),
    missing: still.map((name) => ({ name, why: `apt could not install ${SERVICES[name].packages.join(' ')}` })),
  }
}

function whyNotInstalled(options) {
  if (options.install === false || process.env.LEASEHOLD_NO_APT) return 'not installed, and installation is disabled'
  if (process.getuid?.() !== 0) return 'not installed, and only root may install'
  if (!existsSync('/etc/debian_version') || !executable('apt-get')) return 'not installed, and this is not Debian'
  return undefined
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const names = process.argv.slice(2)
  const result = ensureServices(names.length > 0 ? names : undefined, { log: (line) => console.error(line) })
  for (const name of result.present) console.log(`${name} present`)
  for (const name of result.installed) console.log(`${name} installed`)
  for (const { name, why } of result.missing) console.log(`${name} missing: ${why}`)
}
