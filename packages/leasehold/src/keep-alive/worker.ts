import { EngineHost, type Port } from '@leasehold/client'
import { parentPort, workerData } from 'node:worker_threads'
import { serviceEngine, type ServiceSettings } from '../service-engine.js'
import { processClockMs } from './process-clock.js'

// The program of the worker thread that renews sessions: it owns the connection to the service.
const parent = parentPort
if (parent) {
  const port: Port = { onMessage: () => {}, post: (message) => parent.postMessage(message) }
  new EngineHost(serviceEngine(workerData as ServiceSettings), port, { sharedClockMs: processClockMs })
  parent.on('message', (message: unknown) => port.onMessage(message as never))
}
