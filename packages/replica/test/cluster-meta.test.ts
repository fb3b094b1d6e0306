import { describe, expect, it } from 'vitest'
import { decodeMeta, encodeMeta } from '../src/cluster-meta.js'

describe('members in a snapshot', () => {
  it('are decoded unchanged', () => {
    const meta = {
      cluster: 'c0'.repeat(16),
      configuration: { voters: [1, 2 ** 51], votersOutgoing: [3], learners: [4], learnersNext: [5], autoLeave: true },
      members: [{ node: 2 ** 51, name: 'n1', peer: 'host:1', url: 'http://host:2' }],
    }
    expect(decodeMeta(encodeMeta(meta))).toEqual(meta)
  })
})
