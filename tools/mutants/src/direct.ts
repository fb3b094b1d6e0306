import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PACKAGES, PACKAGES_FOLDER, patched } from './copy.js'
import { type Mutant, patchesSources } from './mutant.js'

/** A test that fails with the bug in. */
export interface FailedTest {
  /** Its file, below the folder of the packages. */
  readonly file: string
  readonly title: string
}

const TIMEOUT_MS = 240_000
const HANGS = 'the tests do not end'

/** What `vitest --reporter=json` says, as far as it matters. */
interface Report {
  readonly numTotalTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

/**
 * Runs the mutant's own tests on a copy of the packages with its patches, and returns the first that fails; undefined: none
 * does. Needs the repository: tests are no part of a package.
 */
export async function failedTest(mutant: Mutant, packages = PACKAGES_FOLDER): Promise<FailedTest | undefined> {
  const { tests = [] } = mutant
  if (tests.length === 0) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-mutant-'))
  try {
    copyTo(folder, mutant, packages)
    const report = await reportOf(folder, mutant)
    return report === 'hangs' ? { file: tests[0] as string, title: HANGS } : firstFailure(report, folder, mutant.id)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The tests read the sources beside them: here those are what the patches fit, the built files or the sources. */
function copyTo(folder: string, mutant: Mutant, packages: string): void {
  const from = patchesSources(mutant) ? 'src' : 'dist'
  for (const name of PACKAGES) {
    const filter = (path: string): boolean => !/\.(d\.ts|map)$/.test(path)
    cpSync(join(packages, name, from), join(folder, name, 'src'), { recursive: true, filter })
  }
  for (const [file, text] of patched(mutant, packages)) {
    writeFileSync(join(folder, file.replace('/dist/', '/src/')), text)
  }
  for (const name of new Set(mutant.tests?.map((file) => file.split('/')[0] as string))) {
    // Their settings extend those of the repository.
    const filter = (path: string): boolean => !path.endsWith('tsconfig.json')
    cpSync(join(packages, name, 'test'), join(folder, name, 'test'), { recursive: true, filter })
  }
  symlinkSync(join(packages, '..', 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n')
  writeFileSync(join(folder, 'vitest.config.mjs'), config(folder, from === 'src' ? 'ts' : 'js'))
}

function config(folder: string, ending: 'ts' | 'js'): string {
  const find = '/^@leasehold\\/([a-z]+)$/'
  const replacement = JSON.stringify(`${folder}/$1/src/index.${ending}`)
  return `export default {
  cacheDir: ${JSON.stringify(join(folder, '.cache'))},
  resolve: { alias: [{ find: ${find}, replacement: ${replacement} }] },
  test: { include: ['*/test/**/*.test.ts'], pool: 'forks', maxWorkers: 1, testTimeout: 60000 },
}
`
}

async function reportOf(folder: string, { tests = [], testName }: Mutant): Promise<Report | 'hangs'> {
  const vitest = join(folder, 'node_modules', 'vitest', 'vitest.mjs')
  const names = testName === undefined ? [] : ['--testNamePattern', testName]
  const child = spawn(process.execPath, [vitest, 'run', '--root', folder, '--reporter=json', ...names, ...tests], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
  })
  let text = ''
  let problem = ''
  child.stdout.on('data', (part: Buffer) => {
    text += String(part)
  })
  child.stderr.on('data', (part: Buffer) => {
    problem = `${problem}${part}`.slice(-2000)
  })
  const signal = await new Promise<NodeJS.Signals | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (_code, by) => resolve(by))
  })
  if (signal !== null) return 'hangs'
  const at = text.indexOf('{"numTotal')
  if (at < 0) throw new Error(`the tests did not run: ${problem}${text.slice(-2000)}`)
  return JSON.parse(text.slice(at)) as Report
}

function firstFailure(report: Report, folder: string, id: string): FailedTest | undefined {
  if (report.numTotalTests === 0) throw new Error(`mutant ${id}: its tests are not there`)
  for (const { name, assertionResults } of report.testResults) {
    const failed = assertionResults.find(({ status }) => status === 'failed')
    const at = name.lastIndexOf(`${folder.slice(folder.lastIndexOf('/'))}/`)
    if (failed) return { file: name.slice(at + folder.length - folder.lastIndexOf('/') + 1), title: failed.fullName }
  }
  return undefined
}
