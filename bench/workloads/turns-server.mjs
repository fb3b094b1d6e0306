// Answers each frame after one write and one flush: the least that a service that forgets nothing can do. See turns.ts.
import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { WebSocketServer } from 'ws'

const FILE_BYTES = 8 * 1024 * 1024
const BLOCK = new Uint8Array(192).fill(1)

const fd = openSync(process.argv[2], 'w+')
writeSync(fd, new Uint8Array(FILE_BYTES), 0, FILE_BYTES, 0)
fdatasyncSync(fd)
let at = 0
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
server.on('connection', (socket) => {
  socket.on('message', (data) => {
    writeSync(fd, BLOCK, 0, BLOCK.length, at)
    fdatasyncSync(fd)
    at = (at + BLOCK.length) % (FILE_BYTES - BLOCK.length)
    socket.send(data)
  })
})
server.on('listening', () => process.stdout.write(`${server.address().port}\n`))
