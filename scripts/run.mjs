// node scripts/run.mjs FILE ARGS…: runs a TypeScript file of this repository on the built packages.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { ensureBuilt, ensureInstalled, root, runMain } from './setup.mjs'

await runMain(async () => {
  const [file, ...args] = process.argv.slice(2)
  if (file === undefined) throw new Error('usage: node scripts/run.mjs FILE ARGS…')
  ensureInstalled()
  ensureBuilt()
  const tsx = import.meta.resolve('tsx')
  const child = spawn(process.execPath, ['--import', tsx, resolve(root, file), ...args], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  return await new Promise((done, fail) => {
    child.on('error', fail)
    child.on('exit', (code, signal) => done(signal === null ? code : 128 + constants.signals[signal]))
  })
})
