import { readFileSync } from 'node:fs'
import { ProtocolEngine, webSocketConnector, type WebSocketLike } from '@leasehold/client'
import { WebSocket } from 'ws'
import { startLeasehold } from '../systems/leasehold.js'

const SESSIONS = 10_000
const HOLDS_PER_SESSION = 10
const AT_ONCE = 200
const TIMEOUT_MS = 60_000

/** What a service process takes for many held locks: 100 000 exclusive holds of 20-byte names in 10 000 sessions. */
export async function memory(): Promise<void> {
  const service = await startLeasehold()
  try {
    const before = residentMiB(service.pid)
    const engine = new ProtocolEngine({
      urls: [service.url],
      connector: webSocketConnector((url) => new WebSocket(url) as unknown as WebSocketLike),
    })
    let next = 0
    const start = performance.now()
    const worker = async (): Promise<void> => {
      for (let i = next++; i < SESSIONS; i = next++) {
        const session = await engine.openSession({ ttlMs: 3_600_000, client: `bench ${i}`, timeoutMs: TIMEOUT_MS })
        await Promise.all(
          Array.from({ length: HOLDS_PER_SESSION }, (_, k) =>
            session.acquire({
              locks: [{ name: `lock-${String(i * HOLDS_PER_SESSION + k).padStart(15, '0')}`, mode: 'exclusive' }],
              waitMs: 0,
              lockDelayMs: 0,
              persistent: false,
              portable: false,
              data: new Uint8Array(0),
            }),
          ),
        )
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    const seconds = (performance.now() - start) / 1000
    await new Promise((resolve) => setTimeout(resolve, 2000))
    const figures = { sessions: SESSIONS, holds: SESSIONS * HOLDS_PER_SESSION, seconds: Number(seconds.toFixed(1)) }
    const after = residentMiB(service.pid)
    process.stdout.write(
      `${JSON.stringify({ workload: 'memory', ...figures, beforeMiB: before, residentMiB: after })}\n`,
    )
    await engine.close()
  } finally {
    await service.stop()
  }
}

/** Linux only. */
function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024)
}
