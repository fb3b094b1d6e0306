import { describe, expect, test } from 'vitest'
import { SseParser } from '../../src/model/sse.js'

describe('SseParser', () => {
  test('parses events whatever the chunk boundaries', () => {
    const text =
      'retry: 1000\n: cluster\n\nevent: held\nid: 1.2.3\ndata: {"a": 1}\n\n: still here\n\nevent: gap\nid: 1.3.0\ndata: {}\n\n'
    const expected = [
      { kind: 'held', id: '1.2.3', data: '{"a": 1}' },
      { kind: 'gap', id: '1.3.0', data: '{}' },
    ]
    for (const size of [1, 2, 7, 1000]) {
      const parser = new SseParser()
      const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
      expect(pieces.flatMap((piece) => parser.push(piece))).toEqual(expected)
    }
  })
})
