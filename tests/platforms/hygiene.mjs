// Judges the packages as they would be published: publint, attw, and several compilers. By hand: npm run hygiene, which
// runs knip, too. Needs the packages of tests/platforms (node scripts/nested.mjs) and a build.
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const root = join(here, '../..')
const COMMAND_TIMEOUT_MS = 120_000

/** The packages that are published. */
export const PUBLISHED = readdirSync(join(root, 'packages')).filter((folder) => !manifest(folder).private)

/** @param {string} folder */
function manifest(folder) {
  return JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'))
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} [cwd]
 * @returns {Promise<{ status: number | null, output: string }>}
 */
export function run(command, args, cwd = here) {
  const child = spawn(command, args, { cwd, timeout: COMMAND_TIMEOUT_MS, env: { ...process.env, NO_COLOR: '1' } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => resolve({ status, output }))
  })
}

/**
 * Packs one package as it is; the tarball lands in `destination`.
 * @param {string} cwd folder of the package
 * @param {string} destination
 */
export async function pack(cwd, destination) {
  const args = ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', destination]
  const { status, output } = await run('npm', args, cwd)
  if (status !== 0) throw new Error(`npm pack in ${cwd}: ${output}`)
}

/** @param {string} name @param {string} file */
const tool = (name, file) => join(here, 'node_modules', name, file)

/** All published packages as tarballs, and unpacked as if they were installed. */
export class Packed {
  /** Inside of this folder, so that packages of others are found above it. */
  folder = mkdtempSync(join(here, '.packed-'))

  /** @param {string} folder */
  tarball(folder) {
    const { name, version } = manifest(folder)
    return join(this.folder, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`)
  }

  /**
   * Packs them.
   * @param {readonly string[]} [folders] default: all that are published
   * @returns {Promise<this>}
   */
  async make(folders = PUBLISHED) {
    for (const folder of folders) {
      await pack(join(root, 'packages', folder), this.folder)
      const target = join(this.folder, 'node_modules', manifest(folder).name)
      mkdirSync(target, { recursive: true })
      await run('tar', ['-xzf', this.tarball(folder), '--strip-components=1', '-C', target])
    }
    cpSync(join(here, 'types'), join(this.folder, 'types'), { recursive: true })
    writeFileSync(join(this.folder, 'package.json'), '{ "private": true, "type": "module" }')
    return this
  }

  /** @param {string} folder of the package */
  publint(folder) {
    return run(process.execPath, [tool('publint', 'src/cli.js'), '--strict', this.tarball(folder)])
  }

  /**
   * The packages are ES modules only: CommonJS loads them with `require` of Node 20.19 or later, which attw does not know,
   * and the resolution of Node 10 knows no `exports`. Everything else must be right.
   * @param {string} folder of the package
   */
  attw(folder) {
    const args = [this.tarball(folder), '--profile', 'esm-only', '--no-color', '--no-emoji', '--format', 'ascii']
    return run(process.execPath, [tool('@arethetypeswrong/cli', 'dist/index.js'), ...args])
  }

  /**
   * Compiles types/*.ts against the packed packages.
   * @param {string} compiler path of tsc
   * @param {string} resolution
   * @param {string} name of the compiler
   */
  compile(compiler, resolution, name) {
    const bundler = resolution === 'bundler'
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: 'es2022',
      lib: ['es2023', 'esnext.disposable', 'dom', 'dom.asynciterable'],
      module: bundler ? 'esnext' : resolution,
      moduleResolution: resolution,
      types: ['node'],
      // Errors inside of our own declarations would be hidden, and those of others would be shown.
      skipLibCheck: true,
    }
    const file = join(this.folder, `tsconfig.${name.replaceAll(' ', '-')}.${resolution}.json`)
    writeFileSync(file, JSON.stringify({ compilerOptions, include: ['types/*.ts'] }))
    return run(process.execPath, [compiler, '-p', file])
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export const COMPILERS = {
  'TypeScript 5.4': tool('typescript54', 'bin/tsc'),
  'TypeScript 6.0': tool('typescript60', 'bin/tsc'),
  'TypeScript 7.0': join(root, 'node_modules/typescript/bin/tsc'),
}
export const RESOLUTIONS = ['node16', 'nodenext', 'bundler']

export function knip() {
  return run(
    process.execPath,
    [tool('knip', 'bin/knip.js'), '--no-progress', '--production', '--config', join(here, 'knip.json')],
    root,
  )
}

if (process.argv[1] === import.meta.filename) {
  const packed = new Packed()
  try {
    await packed.make()
    /** @type {[string, () => Promise<{ status: number | null, output: string }>][]} */
    const checks = [['knip', knip]]
    for (const folder of PUBLISHED) {
      checks.push([`publint ${folder}`, () => packed.publint(folder)], [`attw ${folder}`, () => packed.attw(folder)])
    }
    for (const [name, compiler] of Object.entries(COMPILERS)) {
      for (const resolution of RESOLUTIONS) {
        checks.push([`${name}, ${resolution}`, () => packed.compile(compiler, resolution, name)])
      }
    }
    for (const [name, check] of checks) {
      const { status, output } = await check()
      console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${name}`)
      if (status === 0) continue
      console.log(output)
      process.exitCode = 1
    }
  } finally {
    packed.remove()
  }
}
