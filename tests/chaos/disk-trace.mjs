// Loaded before a member (`node --import`): writes down, as lines of JSON in the file `trace` beside the data folder, what the
// member writes and syncs there, and which acknowledgements and votes it sends to other members, in their order.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { basename, dirname, join } from 'node:path'
import { peekMessage } from '@leasehold/replica'

const HEAD_BYTES = 5
const KIND_AT = 4
const FRAME_REPLICA = 0

const data = process.argv[process.argv.indexOf('--data') + 1]
const trace = fs.openSync(join(dirname(data), 'trace'), 'a')
const { closeSync, fdatasync, fdatasyncSync, fsyncSync, open, openSync, renameSync, writeSync, writev, writevSync } = fs
const paths = new Map()

function note(what, more) {
  writeSync(trace, `${JSON.stringify({ pid: process.pid, what, ...more })}\n`)
}

/** Only what is in the data folder, or the folder itself. */
function noteFile(what, fd, more = {}) {
  const path = paths.get(fd)
  if (path === data) note(what, { file: '.' })
  else if (path !== undefined && dirname(path) === data) note(what, { file: basename(path), ...more })
}

const bytesOf = (chunks) => chunks.reduce((sum, chunk) => sum + chunk.length, 0)

fs.openSync = (path, ...rest) => {
  const fd = openSync(path, ...rest)
  paths.set(fd, path)
  return fd
}
fs.open = (path, flags, mode, done) =>
  open(path, flags, mode, (error, fd) => {
    if (!error) paths.set(fd, path)
    done(error, fd)
  })
fs.closeSync = (fd) => {
  paths.delete(fd)
  closeSync(fd)
}
fs.renameSync = (from, to) => {
  renameSync(from, to)
  for (const [fd, path] of paths) if (path === from) paths.set(fd, to)
}
fs.writev = (fd, chunks, at, done) => {
  noteFile('write', fd, { at, bytes: bytesOf(chunks) })
  writev(fd, chunks, at, done)
}
fs.writevSync = (fd, chunks, at) => {
  noteFile('write', fd, { at, bytes: bytesOf(chunks) })
  return writevSync(fd, chunks, at)
}
fs.fdatasync = (fd, done) =>
  fdatasync(fd, (error) => {
    if (!error) noteFile('sync', fd)
    done(error)
  })
fs.fdatasyncSync = (fd) => {
  fdatasyncSync(fd)
  noteFile('sync', fd)
}
fs.fsyncSync = (fd) => {
  fsyncSync(fd)
  noteFile('sync', fd)
}
syncBuiltinESMExports()

const { write } = net.Socket.prototype
const heads = new WeakMap()
net.Socket.prototype.write = function (chunk, ...rest) {
  if (chunk instanceof Uint8Array) {
    const length = heads.get(this)
    heads.delete(this)
    if (length === chunk.length) noteMessage(chunk)
    else if (chunk.length === HEAD_BYTES && chunk[KIND_AT] === FRAME_REPLICA) {
      heads.set(this, new DataView(chunk.buffer, chunk.byteOffset).getUint32(0, true))
    }
  }
  return write.call(this, chunk, ...rest)
}

function noteMessage(frame) {
  const message = peekMessage(frame)
  if (message === undefined || message.reject) return
  if (message.kind === 'appendReply') note('ack', { index: message.index })
  if (message.kind === 'voteReply') note('vote', { term: message.term })
}
