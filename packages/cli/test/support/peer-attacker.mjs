// peer-attacker.mjs DEED PORT CA CERT KEY CLUSTER FROM TO: an attacker on the peer port of the member TO, with a certificate
// of the members' authority. It claims to be the member FROM, and prints what it receives.
import { readFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { encodeEntry } from '@leasehold/core'
import { writeMessage } from '../../../replica/dist/wire/consensus-messages.js'
import { PeerFrames } from '../../../replica/dist/wire/peer-frames.js'
import {
  encodeSender,
  FRAME_REPLICA,
  FRAME_REQUEST,
  FRAME_SENDER,
  frameHead,
} from '../../../server/dist/peers/framing.js'

const HUGE_TERM = 2 ** 40
const PATIENCE_MS = 1_500

const [deed, port, ca, cert, key, cluster, from, to] = process.argv.slice(2)
const [own, target] = [Number(from), Number(to)]

const socket = connect({
  host: '127.0.0.1',
  port: Number(port),
  servername: 'localhost',
  ca: readFileSync(ca),
  cert: readFileSync(cert),
  key: readFileSync(key),
})
socket.on('data', (data) => process.stdout.write(data))
socket.on('error', () => {})
socket.on('close', () => process.exit())
setTimeout(() => process.exit(), PATIENCE_MS)

function send(kind, content) {
  socket.write(Buffer.concat([frameHead(kind, content.length), content]))
}

/** A message of consensus in the name of the member FROM. */
function sendMessage(message) {
  const frames = new PeerFrames(cluster, own)
  send(FRAME_SENDER, encodeSender({ node: own, address: 'localhost:1' }))
  send(
    FRAME_REPLICA,
    frames.encode('consensus', target, (writer) => writeMessage(writer, { from: own, to: target, ...message })),
  )
}

if (deed === 'status') send(FRAME_REQUEST, Buffer.from('{}'))
else if (deed === 'term') sendMessage({ kind: 'vote', term: HUGE_TERM, index: 0, logTerm: 0, context: 0 })
else {
  const put = { kind: 'put', key: 'stolen', value: new Uint8Array([1]) }
  const data = encodeEntry({ at: Date.now(), commands: [put] })
  sendMessage({ kind: 'propose', term: 0, entries: [{ kind: 'normal', term: 0, index: 0, data }] })
}
