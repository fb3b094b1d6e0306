import { ALL_CAPABILITIES, type Engine, type OwnedPort, RemoteEngine } from '@leasehold/client'
import { Worker } from 'node:worker_threads'
import type { ServiceSettings } from '../service-engine.js'
import { processClockMs } from './process-clock.js'

/** Returns an engine whose connection and renewals run in a worker thread, which starts with the first call. */
export function threadEngine(settings: ServiceSettings): Engine {
  return new RemoteEngine({
    name: settings.urls.join(','),
    capabilities: ALL_CAPABILITIES,
    sharedClockMs: processClockMs,
    openPort: () => openThread(settings),
  })
}

function openThread(settings: ServiceSettings): OwnedPort {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: settings, name: 'leasehold' })
  const gone = new Promise<void>((resolve) => {
    worker.once('exit', (code) => {
      port.onGone(new Error(`it exited with code ${code}`))
      resolve()
    })
  })
  const port: OwnedPort = {
    onMessage: () => {},
    onGone: () => {},
    post: (message) => worker.postMessage(message),
    keepAlive: (wanted) => (wanted ? worker.ref() : worker.unref()),
    close: async () => {
      await worker.terminate()
      await gone
    },
  }
  worker.on('message', (message: unknown) => port.onMessage(message as never))
  worker.on('error', (error) => port.onGone(error))
  worker.unref()
  return port
}
