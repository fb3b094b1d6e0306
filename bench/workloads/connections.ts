import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeClientMessages, STREAM_VERSION } from '@leasehold/core'
import { createLocks } from 'leasehold'
import { WebSocket } from 'ws'
import { print } from '../harness/comparison.js'
import { startLeasehold } from '../systems/leasehold.js'

const IDLE = 5_000
const BUSY = 500
const AT_ONCE = 200
const NAMES = 64

/** 5 000 connections that are only there, and 500 that take and release locks: what the service's process takes. */
export async function connections(options: { seconds: number }): Promise<void> {
  const service = await startLeasehold()
  const idle: WebSocket[] = []
  try {
    const beforeMiB = residentMiB(service.pid)
    for (let i = 0; i < IDLE; i += AT_ONCE) {
      idle.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => welcomed(service.url)))))
    }
    const idleMiB = residentMiB(service.pid)
    const clients = Array.from({ length: BUSY }, (_, i) => createLocks(service.url, { clientName: `busy ${i}` }))
    const end = performance.now() + options.seconds * 1000
    let [pairs, mostMiB] = [0, idleMiB]
    const work = clients.map(async (locks, i) => {
      while (performance.now() < end) {
        await locks.request(`busy/${i % NAMES}`, () => {})
        pairs++
      }
    })
    while (performance.now() < end) {
      mostMiB = Math.max(mostMiB, residentMiB(service.pid))
      await sleep(200)
    }
    await Promise.all(work)
    const alive = idle.filter((socket) => socket.readyState === WebSocket.OPEN).length
    await Promise.all(clients.map((locks) => locks.close()))
    const pairsPerSecond = Math.round(pairs / options.seconds)
    print({ workload: 'connections', idle: IDLE, alive, busy: BUSY, beforeMiB, idleMiB, mostMiB, pairsPerSecond })
  } finally {
    for (const socket of idle) socket.terminate()
    await service.stop()
  }
}

function welcomed(url: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`, { perMessageDeflate: false })
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('open', () => {
      socket.send(
        encodeClientMessages([{ kind: 'hello', version: STREAM_VERSION, apiKey: '', client: 'idle', epoch: 0 }]),
      )
    })
    socket.once('message', () => resolve(socket))
  })
}

/** Linux only. */
function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024)
}
