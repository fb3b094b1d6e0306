import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StaleTokenError, TOKEN_MAX } from '@leasehold/core'
import fc from 'fast-check'
import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  fencedFetch,
  fencingHeader,
  FencingRequiredError,
  holdOfRequest,
  parseFencingHeader,
  problemOf,
} from '../src/http.js'
import { guardSql } from '../src/migrations.js'
import { fence } from '../src/sqlite.js'
import { holdOf, holdOfLocks } from './support/holds.js'

describe('the header between services', () => {
  it('carries any names and tokens', () => {
    expect(fencingHeader(holdOf(33n, 'billing/invoice-42'))).toBe('billing%2Finvoice-42=33')
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
      .filter((text) => !/[\p{Cc}\p{Cs}]/u.test(text))
    const token = fc.bigInt({ min: 1n, max: TOKEN_MAX })
    const locks = fc.uniqueArray(fc.record({ name, token }), {
      minLength: 1,
      maxLength: 8,
      selector: (lock) => lock.name,
    })
    fc.assert(
      fc.property(locks, (some) => {
        const header = fencingHeader(holdOfLocks(some.map((lock) => ({ ...lock, mode: 'exclusive' as const }))))
        expect(header).toMatch(/^[\x21-\x7e ]+$/)
        expect(parseFencingHeader(header)).toEqual(some)
      }),
    )
  })

  it('selects one lock, and rejects holds that cannot be passed on', () => {
    const both = holdOfLocks([
      { name: 'a', mode: 'exclusive', token: 33n },
      { name: 'b', mode: 'shared', token: 12n },
    ])
    expect(fencingHeader(both, { lock: 'a' })).toBe('a=33')
    expect(() => fencingHeader(both)).toThrow(/exclusive/)
    expect(() => fencingHeader(both, { lock: 'c' })).toThrow(/no lock/)
    expect(() => fencingHeader(holdOf(33n, 'gpu', { permits: 2 }, 0))).toThrow(/exclusive/)
    const lost = holdOf(33n)
    lost.lose()
    expect(() => fencingHeader(lost)).toThrow(/lost/)
  })

  it.each([
    'a',
    'a=',
    '=3',
    'a=-1',
    'a=0',
    'a=1.5',
    'a=9223372036854775808',
    'a=3;b=4',
    'a=3,a=4',
    'a=3,',
    '%zz=3',
    '%00=3',
    'a b=3',
    `${'x'.repeat(600)}=1`,
  ])('refuses %j', (text) => {
    expect(() => parseFencingHeader(text)).toThrow(expect.objectContaining({ code: 'invalid' }))
  })

  it('reads headers in every form', () => {
    for (const headers of [
      { 'fencing-token': 'a=33' },
      { 'Fencing-Token': 'a=33' },
      { 'fencing-token': ['a=33'] },
      new Headers({ 'Fencing-Token': 'a=33' }),
    ]) {
      expect(holdOfRequest(headers).tokenOf('a')).toBe(33n)
    }
    for (const headers of [{}, new Headers(), { 'fencing-token': ' ' }, { 'fencing-token': undefined }]) {
      expect(() => holdOfRequest(headers)).toThrow(FencingRequiredError)
    }
    expect(() => holdOfRequest({ 'fencing-token': 'a=33' }).tokenOf('b')).toThrow(/no token/)
  })

  it('returns undefined for errors of others', () => {
    expect(problemOf(new Error('x'))).toBe(undefined)
    expect(problemOf(new StaleTokenError('r', 33n, 34n))?.body).toMatchObject({
      status: 412,
      code: 'stale-token',
      token: '33',
      mark: '34',
    })
  })
})

describe('a service behind the header', () => {
  const db = new Database(':memory:')
  db.exec(guardSql('sqlite'))
  db.exec('CREATE TABLE item (n INTEGER NOT NULL); INSERT INTO item VALUES (0)')
  const guard = fence(db)
  const server = createServer((request, response) => {
    const handle = async () => {
      const hold = holdOfRequest(request.headers)
      await guard.with(hold, (tx) => tx.exec('UPDATE item SET n = n + 1'))
      response.writeHead(204).end()
    }
    handle().catch((error: unknown) => {
      const problem = problemOf(error)
      if (problem === undefined) response.writeHead(500).end()
      else response.writeHead(problem.status, { 'content-type': problem.contentType }).end(JSON.stringify(problem.body))
    })
  })
  let url: string
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve))
    db.close()
  })

  it('accepts the holder, rejects a stale one with 412 and requests without a token with 428', async () => {
    expect((await fencedFetch(holdOf(34n))(url, { method: 'PUT', headers: { 'x-other': '1' } })).status).toBe(204)
    const stale = await fencedFetch(holdOf(33n))(url, { method: 'PUT' })
    expect([stale.status, stale.headers.get('content-type')]).toEqual([412, 'application/problem+json'])
    expect(await stale.json()).toMatchObject({ status: 412, resource: 'billing/invoice-42', token: '33', mark: '34' })
    const bare = await fetch(url, { method: 'PUT' })
    expect([bare.status, await bare.json()]).toEqual([428, expect.objectContaining({ title: 'Precondition Required' })])
    const wrong = await fetch(url, { method: 'PUT', headers: { 'Fencing-Token': 'a=x' } })
    expect(wrong.status).toBe(400)
    expect(db.prepare('SELECT n FROM item').all()).toEqual([{ n: 1 }])
  })
})
