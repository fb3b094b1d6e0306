import { readFileSync } from 'node:fs'
import { judge, type Level } from './judge.js'

// raft-scripts [--level state|trace] [--verbose] FILES…: exit 0 only if every file is ok, 1 if one differs, 2 on bad use.
const args = process.argv.slice(2)
let level: Level = 'trace'
let verbose = false
const files: string[] = []
for (let i = 0; i < args.length; i++) {
  const arg = args[i] as string
  if (arg === '--level') {
    const value = args[++i]
    if (value !== 'state' && value !== 'trace') fail(`--level is state or trace, not ${value}`)
    level = value as Level
  } else if (arg === '--verbose') verbose = true
  else if (arg.startsWith('--')) fail(`unknown option ${arg}`)
  else files.push(arg)
}
if (files.length === 0) fail('usage: npm run raft-scripts -- [--level state|trace] [--verbose] FILES…')

let exitCode = 0
for (const file of files) {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    fail(`cannot read ${file}: ${(error as Error).message}`)
    break
  }
  try {
    const verdict = judge(text, level)
    if (verdict.ok) console.log(`${file} ok`)
    else {
      exitCode = 1
      console.log(`${file} differs at line ${verdict.line}`)
      if (verbose) console.log(`  expected: ${verdict.expected}\n  got:      ${verdict.got}`)
    }
  } catch (error) {
    exitCode = 1
    const line = /^line (\d+):/.exec((error as Error).message)?.[1] ?? 1
    console.log(`${file} differs at line ${line}`)
    console.error(`  ${file}: ${verbose ? (error as Error).stack : (error as Error).message}`)
  }
}
process.exitCode = exitCode

function fail(text: string): never {
  console.error(text)
  process.exit(2)
}
