// npm start: installs, builds, and serves from ./data on http://127.0.0.1:4100. Arguments go to `leasehold serve`.
import { ensureBuilt, ensureInstalled, root, runMain } from './setup.mjs'

const given = process.argv.slice(2)
const names = new Set(given.map((argument) => argument.split('=')[0]))

await runMain(async () => {
  ensureInstalled()
  ensureBuilt()
  const args = ['serve']
  if (!names.has('--data')) args.push('--data', './data')
  if (!names.has('--listen')) args.push('--listen', '127.0.0.1:4100')
  const bin = `${root}packages/leasehold/bin/leasehold.js`
  process.argv = [process.argv[0], bin, ...args, ...given]
  await import(bin)
  return process.exitCode
})
