import { MESSAGE_KINDS, message } from '@leasehold/raft'
import { describe, expect, it } from 'vitest'
import { writeMessage } from '../../src/wire/consensus-messages.js'
import { peekMessage } from '../../src/wire/peek.js'
import { PeerFrames } from '../../src/wire/peer-frames.js'

describe('a look at a frame', () => {
  const frames = new PeerFrames('c1'.repeat(16), 300)

  it('tells what a message of consensus says, of every kind', () => {
    for (const kind of MESSAGE_KINDS) {
      for (const reject of [false, true]) {
        const sent = message({ kind, from: 300, to: 2 ** 40, term: 5, logTerm: 4, index: 1000, reject })
        const frame = frames.encode('consensus', 2 ** 40, (writer) => writeMessage(writer, sent))
        expect(peekMessage(frame)).toEqual({ kind, from: 300, to: 2 ** 40, term: 5, index: 1000, reject })
      }
    }
  })

  it('finds no message in what is none', () => {
    expect(peekMessage(frames.encode('stateHash', 9, (writer) => writer.string('x')))).toBeUndefined()
    expect(peekMessage(new Uint8Array(0))).toBeUndefined()
  })
})
