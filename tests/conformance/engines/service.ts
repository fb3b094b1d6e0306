import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  ALL_CAPABILITIES,
  createLocksOn,
  ProtocolEngine,
  type WebSocketLike,
  webSocketConnector,
} from '@leasehold/client'
import { createLocks } from 'leasehold'
import WebSocket from 'ws'
import { Cli } from '../../../packages/cli/test/support/cli.js'
import { ChaosCluster } from '../../chaos/cluster.js'
import { Proxy } from '../../services/proxy.js'
import type { Fixture, RunningEngine } from '../fixture.js'

const base = { capabilities: ALL_CAPABILITIES, shortestTtlMs: 500, expirySlackMs: 1_500, line: true }

export const server: Fixture = {
  ...base,
  name: '`http://`, one member',
  start: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-conformance-'))
    const args = ['serve', '--data', join(folder, 'data'), '--listen', '127.0.0.1:0', '--json', '--log-level', 'silent']
    const process = new Cli(args)
    await process.printed('"url"')
    const { url } = JSON.parse(process.stdout) as { url: string }
    return behindProxies([url], async () => {
      process.kill('SIGKILL')
      await process.finished
      rmSync(folder, { recursive: true, force: true })
    })
  },
}

export const cluster: Fixture = {
  ...base,
  name: '`http://`, three members',
  start: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-conformance-'))
    const members = await ChaosCluster.start(folder, 3, (member, code, signal) => {
      throw new Error(`${member.name} ended by itself: ${code ?? signal}`)
    })
    return behindProxies(members.url.split(','), async () => {
      await members.close()
      rmSync(folder, { recursive: true, force: true })
    })
  },
}

/** Clients that go straight to the members, and others that reach every member through a door of its own. */
async function behindProxies(urls: readonly string[], stop: () => Promise<void>): Promise<RunningEngine> {
  const proxies = new Map<string, Proxy>()
  for (const url of urls) proxies.set(new URL(url).port, await Proxy.start(Number(new URL(url).port)))
  const each = (action: (proxy: Proxy) => void) => () => [...proxies.values()].forEach(action)
  // Members tell their own addresses to their clients: only at the socket is the door sure to be taken.
  const throughDoor = (text: string): WebSocketLike => {
    const url = new URL(text)
    url.port = String(proxies.get(url.port)?.port)
    return new WebSocket(url)
  }
  return {
    client: (options) => createLocks(urls.join(','), options),
    line: {
      client: (options) =>
        createLocksOn(new ProtocolEngine({ urls, connector: webSocketConnector(throughDoor) }), options),
      mute: each((proxy) => proxy.mute()),
      shut: each((proxy) => proxy.shut()),
      open: each((proxy) => proxy.open()),
    },
    stop: async () => {
      await stop()
      await Promise.all([...proxies.values()].map((proxy) => proxy[Symbol.asyncDispose]()))
    },
  }
}
