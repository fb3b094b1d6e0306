import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import * as leasehold from '../src/index.js'
import { connect, createLocks, InvalidError, UnavailableError } from '../src/index.js'
import { type Service, Workshop } from '../../cli/test/support/cli.js'

const workshop = new Workshop()
afterAll(() => workshop.close())

const refusal = (make: () => unknown): unknown => {
  try {
    return make()
  } catch (error) {
    return error
  }
}

describe('createLocks', () => {
  test('rejects unknown schemes, and lists the known ones', () => {
    for (const url of ['mysql://127.0.0.1:3306', 'ftp://x', '127.0.0.1:4100', '', 'http://a,ftp://b', 'http://']) {
      const error = refusal(() => createLocks(url))
      expect([url, error]).toEqual([url, expect.any(InvalidError)])
    }
    const { hint } = refusal(() => createLocks('mysql://127.0.0.1:3306')) as InvalidError
    for (const scheme of ['http://', 'https://', 'file:', 'memory:']) expect(hint).toContain(scheme)
  })

  test('rejects wrong options', () => {
    const make = (options: object) => refusal(() => createLocks('memory:x', options))
    expect(make({ ttl: 30 })).toBeInstanceOf(InvalidError)
    expect(make({ tll: '30s' })).toBeInstanceOf(InvalidError)
    expect(make({ transport: 'pigeon' })).toBeInstanceOf(InvalidError)
    expect(make({ margin: '10ms' })).toBeInstanceOf(InvalidError)
  })

  test('createLocks connects on first use, connect at once', async () => {
    const locks = createLocks('http://127.0.0.1:1', { connectTimeout: 200 })
    expect(locks.status.state).toBe('idle')
    await expect(locks.acquire('x')).rejects.toBeInstanceOf(UnavailableError)
    await locks.close()
    await expect(connect('http://127.0.0.1:1', { connectTimeout: 200 })).rejects.toBeInstanceOf(UnavailableError)
  })

  test('has a stable list of exports', () => {
    expect(Object.keys(leasehold).sort()).toEqual([
      'AbortedError',
      'AccessError',
      'AcquireTimeoutError',
      'BusyError',
      'DEFAULT_URL',
      'EpochChangedError',
      'ExpiredRequestError',
      'HoldLostError',
      'InvalidError',
      'LeaseholdError',
      'LimitError',
      'NotHolderError',
      'SessionEndedError',
      'StaleTokenError',
      'StorageError',
      'UnavailableError',
      'UnknownOutcomeError',
      'VERSION',
      'VersionConflictError',
      'WatchError',
      'connect',
      'connectApproximate',
      'createLocks',
      'defaultUrl',
      'formatToken',
      'padToken',
      'parseToken',
    ])
  })
})

describe('one program on every scheme', () => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-sdk-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  let service: Service | undefined

  const schemes: [string, () => Promise<string>][] = [
    [
      'http:',
      async () => {
        service ??= await workshop.serve(workshop.folder())
        return service.url
      },
    ],
    ['file:', async () => `file:${join(folder, 'data')}`],
    ['memory:', async () => 'memory:one-program'],
  ]

  test.each(schemes)('%s', async (_, urlOf) => {
    const url = await urlOf()
    const locks = await connect(url, { ttl: '20s' })
    const first = await locks.acquire('program/a')
    expect(await locks.tryAcquire('program/a')).toBeNull()
    const queued = locks.acquire('program/a')
    await first.release()
    const second = await queued
    expect(second.token).toBeGreaterThan(first.token)
    await second.release()

    const both = await locks.acquire(['program/b', { name: 'program/c', mode: 'shared' }])
    expect(both.tokenOf('program/b')).toBeGreaterThan(0n)
    await both.release()
    const permit = await locks.acquire('program/gpu', { permits: 2 })
    expect(permit.slot).toBe(0)
    await permit.release()

    const register = locks.register('program/config')
    const { version } = await register.put({ on: true }, { ifVersion: 0n })
    expect(await register.get()).toMatchObject({ value: { on: true }, version })
    await expect(register.put({ on: false }, { ifVersion: 0n })).rejects.toBeInstanceOf(leasehold.VersionConflictError)
    expect(await locks.request('program/a', () => 42)).toBe(42)
    await locks.close()
  })

  test('file: keeps state and tokens over a restart', async () => {
    const url = `file:${join(folder, 'kept')}`
    const before = await connect(url)
    const { version } = await before.register('kept').put('value')
    const old = await before.acquire('kept')
    await old.release()
    await before.close()
    const after = await connect(url)
    expect(await after.register('kept').get()).toMatchObject({ value: 'value', version })
    const fresh = await after.acquire('kept')
    expect(fresh.token).toBeGreaterThan(old.token)
    await after.close()
  })
})
