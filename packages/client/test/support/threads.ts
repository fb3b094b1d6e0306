import { type Engine, EngineHost, type OwnedPort, type Port, RemoteEngine } from '../../src/index.js'
import type { TestPlatform } from './platform.js'

const POST_TURNS_MAX = 3

/** Two ends that talk by structured clones, as threads do, in one event loop. */
export function portPair(): [OwnedPort & { die(): void }, Port] {
  let alive = true
  const deliver = (port: Port, message: unknown) => {
    const copy: unknown = structuredClone(message)
    queueMicrotask(() => {
      if (alive) port.onMessage(copy as never)
    })
  }
  const far: Port = { onMessage: () => {}, post: (message) => deliver(near, message) }
  const near: OwnedPort & { die(): void } = {
    onMessage: () => {},
    onGone: () => {},
    post: (message) => deliver(far, message),
    keepAlive: () => {},
    close: async () => {
      for (let turn = 0; turn < POST_TURNS_MAX; turn++) await Promise.resolve()
      alive = false
    },
    die: () => {
      alive = false
      near.onGone(new Error('the thread has died'))
    },
  }
  return [near, far]
}

/** `engine` as seen from another thread. */
export function beside(engine: Engine, platform: TestPlatform): Engine {
  return new RemoteEngine({
    name: engine.name,
    capabilities: engine.capabilities,
    platform,
    sharedClockMs: () => platform.mono,
    openPort: () => {
      const [near, far] = portPair()
      new EngineHost(engine, far, { platform, sharedClockMs: () => platform.mono })
      return near
    },
  })
}
