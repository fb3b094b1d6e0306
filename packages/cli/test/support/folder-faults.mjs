// Loaded before a member (`node --import`): the file `fault` beside its data folder says what reading its owner file does.
// An error code: it fails with that one; `hang`: it never comes to an end. Without the file it works.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'

const wish = join(dirname(process.argv[process.argv.indexOf('--data') + 1]), 'fault')
const { readFile } = fs

function wished() {
  try {
    return fs.readFileSync(wish, 'utf8')
  } catch {
    return ''
  }
}

fs.readFile = (path, ...more) => {
  const fault = /owner\.\d+$/.test(String(path)) ? wished() : ''
  if (fault === 'hang') return
  if (fault === '') return readFile(path, ...more)
  const error = Object.assign(new Error(`${fault}: as the test wants it, open '${path}'`), { code: fault })
  setImmediate(() => more.at(-1)(error))
}
syncBuiltinESMExports()
