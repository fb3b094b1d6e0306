import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { Redis } from 'ioredis'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { startEtcd } from './etcd.js'
import { startMariadb } from './mariadb.js'
import { startPostgres } from './postgres.js'
import type { Service } from './process.js'
import { startRedis } from './redis.js'
import { describeWith } from './suite.js'

const started: Service[] = []
afterAll(() => Promise.all(started.map((one) => one.stop())))

function refuses(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', () => resolve(true))
  })
}

async function isGone(one: Service): Promise<void> {
  await one.stop()
  expect(existsSync(one.folder)).toBe(false)
  expect(await refuses(one.port)).toBe(true)
  expect(() => process.kill(one.pid, 0)).toThrow()
}

describeWith('PostgreSQL', 'a throw-away PostgreSQL', () => {
  it('answers, applies settings, and leaves nothing behind', async () => {
    const one = await startPostgres({ fsync: true, settings: { max_connections: '7' } })
    started.push(one)
    const client = new pg.Client({ connectionString: one.url })
    await client.connect()
    const rows = (await client.query("select current_setting('fsync') f, current_setting('max_connections') m")).rows
    expect(rows).toEqual([{ f: 'on', m: '7' }])
    await client.end()
    await isGone(one)
  })
})

describeWith('Redis', 'a throw-away Redis', () => {
  it('answers and leaves nothing behind', async () => {
    const one = await startRedis({ appendfsync: 'always' })
    started.push(one)
    const client = new Redis(one.url, { lazyConnect: true })
    await client.connect()
    expect(await client.set('a', '1')).toBe('OK')
    expect(await client.config('GET', 'appendfsync')).toEqual(['appendfsync', 'always'])
    await client.quit()
    await isGone(one)
  })
})

describeWith('MariaDB', 'a throw-away MariaDB', () => {
  it('answers and leaves nothing behind', async () => {
    const one = await startMariadb({ args: ['--max-connections=17'] })
    started.push(one)
    const client = await mysql.createConnection(one.url)
    const [rows] = await client.query('SELECT database() AS d, @@max_connections AS m')
    expect(rows).toEqual([{ d: 'test', m: 17 }])
    await client.end()
    await isGone(one)
  })
})

describeWith('etcd', 'a throw-away etcd', () => {
  it('answers and leaves nothing behind', async () => {
    const one = await startEtcd()
    started.push(one)
    const body = JSON.stringify({ key: 'YQ==', value: 'MQ==' })
    const answer = await fetch(`${one.url}/v3/kv/put`, { method: 'POST', body })
    expect(answer.status).toBe(200)
    await isGone(one)
  })
})
