// Loaded before a member (`node --import`): its disk can be made to hang within a flush. A test that writes a file `hang` beside
// the data folder says what hangs: with `process` the whole process stands still, as within a call that blocks; with `disk`
// only the flush does, as on another thread. It is renamed to `hanging` when that begins, and ends when that file is gone.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'

const folder = dirname(process.argv[process.argv.indexOf('--data') + 1])
const [wish, hanging] = [join(folder, 'hang'), join(folder, 'hanging')]
const LOOK_EVERY_MS = 10
/** A flush that takes so long on average is moved to another thread. */
const SLOW_MS = 20
const { fdatasync, fdatasyncSync } = fs
const standstill = new Int32Array(new SharedArrayBuffer(4))

function wished() {
  try {
    return fs.readFileSync(wish, 'utf8')
  } catch {
    return 'nothing'
  }
}

function standStill() {
  fs.renameSync(wish, hanging)
  while (fs.existsSync(hanging)) Atomics.wait(standstill, 0, 0, LOOK_EVERY_MS)
}

fs.fdatasyncSync = (fd) => {
  const what = wished()
  if (what === 'process') standStill()
  if (what === 'disk') Atomics.wait(standstill, 0, 0, SLOW_MS)
  fdatasyncSync(fd)
}
fs.fdatasync = (fd, done) => {
  const what = wished()
  if (what === 'process') standStill()
  if (what !== 'disk') return fdatasync(fd, done)
  fs.renameSync(wish, hanging)
  const timer = setInterval(() => {
    if (fs.existsSync(hanging)) return
    clearInterval(timer)
    fdatasync(fd, done)
  }, LOOK_EVERY_MS)
}
syncBuiltinESMExports()
