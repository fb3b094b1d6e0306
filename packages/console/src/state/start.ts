import { apiKey, keepSettings, locked } from './settings.js'
import { clusterDenied, clusterLoop } from './cluster.js'
import { followFeed } from './event-stream.js'
import { now, refused, startClock } from './health.js'
import { locksLoop, wakeOnChanges } from './locks.js'
import { followRegisters } from './registers.js'
import { followAddress, place } from './route.js'

/** Everything that goes on while the page is open. */
export function start(): void {
  keepSettings()
  followAddress()
  startClock()
  wakeOnChanges()
  followFeed()
  followRegisters()
  place.subscribe(() => clusterLoop.wake())
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return
    now.value = performance.now()
    tryNow()
  })
  addEventListener('online', tryNow)
}

/** Does not wait for the next try. */
export function tryNow(): void {
  locksLoop.wake()
  clusterLoop.wake()
}

/** Goes on with another key; '' without one. */
export function takeKey(key: string): void {
  locked.value = undefined
  refused.value = undefined
  clusterDenied.value = undefined
  apiKey.value = key
  tryNow()
}
