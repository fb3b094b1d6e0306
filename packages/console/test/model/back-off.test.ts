import { describe, expect, test } from 'vitest'
import { backOffMs } from '../../src/model/back-off.js'

describe('backOffMs', () => {
  test('doubles up to five seconds', () => {
    expect([1, 2, 3, 4, 5, 6, 1_000].map(backOffMs)).toEqual([500, 1000, 2000, 4000, 5000, 5000, 5000])
  })
})
