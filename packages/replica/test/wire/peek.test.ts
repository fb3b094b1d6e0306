import { MESSAGE_KINDS, message } from '@leasehold/raft'
import { describe, expect, it } from 'vitest'
import { writeMessage } from '../../src/wire/consensus-messages.js'
import { peekMessage } from '../../src/wire/peek.js'
import { PeerFrames } from '../../src/wire/peer-frames.js'

const configuration = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }

describe('peekMessage', () => {
  const frames = new PeerFrames('c1'.repeat(16), 300)

  it('returns the leading fields of every kind of consensus message', () => {
    for (const kind of MESSAGE_KINDS) {
      for (const reject of [false, true]) {
        const snapshot = { index: 4, term: 5, configuration }
        const fields = { kind, from: 300, to: 2 ** 40, term: 5, logTerm: 4, index: 1000, reject, snapshot }
        const sent = message(fields as never)
        const frame = frames.encode('consensus', 2 ** 40, (writer) => writeMessage(writer, sent))
        expect(peekMessage(frame)).toEqual({
          kind,
          from: 300,
          to: 2 ** 40,
          term: 5,
          index: 'index' in sent ? sent.index : 0,
          reject: 'reject' in sent ? sent.reject : false,
        })
      }
    }
  })

  it('returns undefined for other frames', () => {
    expect(peekMessage(frames.encode('stateHash', 9, (writer) => writer.string('x')))).toBeUndefined()
    expect(peekMessage(new Uint8Array(0))).toBeUndefined()
  })
})
