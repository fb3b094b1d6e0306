// npm run verify:s3 (verify:mongo, verify:dynamodb): runs a guard against a real store of the user.
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { ensureNested } from './nested.mjs'
import { ensureBuilt, ensureInstalled, root, runMain } from './setup.mjs'

await runMain(async () => {
  const [kind, ...args] = process.argv.slice(2)
  ensureInstalled()
  ensureBuilt()
  for (const { folder, why } of ensureNested(['tests/cloud'])) throw new Error(`${folder}: ${why}`)
  const file = resolve(root, `tests/cloud/verify/${kind}.ts`)
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), file, ...args], { stdio: 'inherit' })
  return await new Promise((done, fail) => {
    child.on('error', fail)
    child.on('exit', (code) => done(code ?? 1))
  })
})
