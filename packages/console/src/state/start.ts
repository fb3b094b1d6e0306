import { apiKey, keepSettings, locked } from './settings.js'
import { clusterDenied, clusterPoller } from './cluster.js'
import { startEventStream } from './event-stream.js'
import { now, refused, startClock } from './health.js'
import { locksPoller, startLocks } from './locks.js'
import { startRegisters } from './registers.js'
import { followAddress, place } from './route.js'

/** Starts everything that runs while the page is open. */
export function start(): void {
  keepSettings()
  followAddress()
  startClock()
  startLocks()
  startEventStream()
  startRegisters()
  place.subscribe(() => clusterPoller.wake())
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return
    now.value = performance.now()
    retryNow()
  })
  addEventListener('online', retryNow)
}

/** Retries immediately. */
export function retryNow(): void {
  locksPoller.wake()
  clusterPoller.wake()
}

/** Sets the API key; '' removes it. */
export function setApiKey(key: string): void {
  locked.value = undefined
  refused.value = undefined
  clusterDenied.value = undefined
  apiKey.value = key
  retryNow()
}
