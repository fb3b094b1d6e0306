import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openNodeReplica } from '@leasehold/replica/node'
import { createServer } from '@leasehold/server'
import { afterEach } from 'vitest'
import { call } from './harness.js'
import { until } from './until.js'

const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A temporary data folder. Removed after the test. */
export function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-server-'))
  folders.push(folder)
  return folder
}

/** A server over a replica with a data folder, once it is ready. The test stops it. */
export async function startReplicaServer(dir: string) {
  let observe: (seconds: number) => void = () => {}
  const member = await openNodeReplica({ dir, keepAlive: true, synced: (seconds) => observe(seconds) })
  const server = await createServer({ member, listen: { port: 0 }, fsyncs: (to) => void (observe = to) })
  const post = (path: string, body: unknown) => call(server.url, 'POST', path, body)
  const get = (path: string) => call(server.url, 'GET', path)
  await until(async () => (await get('/readyz')).status === 200)
  const stop = async () => {
    await server.close()
    await new Promise<void>((resolve) => member.stop(resolve))
  }
  return { post, get, stop, url: server.url }
}
