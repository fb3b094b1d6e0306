import { describe, expect, it } from 'vitest'
import { BusyError, ERRORS, errorOf, InvalidError, isErrorCode, LeaseholdError, StorageError } from '../src/index.js'

class Rotten extends StorageError {}

describe('errors are recognised', () => {
  it('by their class and by every class above it', () => {
    const error = new StorageError('a disk')
    expect(error).toBeInstanceOf(StorageError)
    expect(error).toBeInstanceOf(LeaseholdError)
    expect(error).not.toBeInstanceOf(BusyError)
    expect(error).not.toBeInstanceOf(InvalidError)
  })

  it('by a subclass without a name of its own only when they are of it', () => {
    expect(new StorageError('a full disk')).not.toBeInstanceOf(Rotten)
    expect(new Rotten('a bit')).toBeInstanceOf(Rotten)
    expect(new Rotten('a bit')).toBeInstanceOf(StorageError)
    expect(new Rotten('a bit').name).toBe('StorageError')
  })

  it('of another copy of the package', () => {
    const other = Object.defineProperty(new Error('elsewhere'), Symbol.for('leasehold.error.BusyError'), {
      value: true,
    })
    expect(other).toBeInstanceOf(BusyError)
    expect(other).not.toBeInstanceOf(StorageError)
  })
})

describe('the code of an error', () => {
  it.each(Object.entries(ERRORS))('%s creates an error of the class in its row', (code, row) => {
    if (!isErrorCode(code)) throw new Error(`${code} is no code`)
    const error = errorOf(code, 'a text', { hint: 'a hint' })
    expect(error.constructor.name).toBe(row.class)
    expect([error.code, error.retryable]).toEqual([code, row.retryable])
    if (code !== 'stale-token') expect([error.message, error.hint]).toEqual(['a text', 'a hint'])
  })

  it.each(['toString', 'constructor', '__proto__', '', 'Busy', 7, undefined, null])('is not %s', (code) => {
    expect(isErrorCode(code)).toBe(false)
  })
})
