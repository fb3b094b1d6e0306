// http-attacker.mjs PORT DEED: an attacker on a port. It reads nothing, and runs until it is killed.
//   short: pipelines 20 MB of small requests on each of four connections
//   long: the same with requests of 1 KiB, of which a chunk has few
//   idle: opens 300 connections, and sends nothing
import { connect } from 'node:net'

const BYTES = 20 * 1024 * 1024
const CONNECTIONS = 4
const IDLE_CONNECTIONS = 300
const PADDING = 1_000
const RECONNECT_MS = 50
const IDLE_RECONNECT_MS = 2_000

const [port, deed] = process.argv.slice(2)
const head = 'GET /v1/locks HTTP/1.1\r\nhost: 127.0.0.1\r\n'
const request = deed === 'long' ? `${head}x: ${'x'.repeat(PADDING)}\r\n\r\n` : `${head}\r\n`
const flood = Buffer.from(request.repeat(Math.ceil(BYTES / request.length)))

/** Connects again whenever the server closes the connection. */
function open() {
  const socket = connect({ port: Number(port), host: '127.0.0.1' }, () => {
    if (deed !== 'idle') socket.write(flood)
  })
  socket.pause()
  socket.on('error', () => {})
  socket.on('close', () => setTimeout(open, deed === 'idle' ? Math.random() * IDLE_RECONNECT_MS : RECONNECT_MS))
}

for (let i = 0; i < (deed === 'idle' ? IDLE_CONNECTIONS : CONNECTIONS); i++) open()
// Paused sockets do not keep a process alive.
setInterval(() => {}, IDLE_RECONNECT_MS)
process.stdout.write('attacking\n')
