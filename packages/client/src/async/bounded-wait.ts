import { AbortedError } from '@leasehold/core'
import type { ClientPlatform } from '../platform.js'
import { after } from './timers.js'

/** The error of an aborted wait. */
export function abortedError(what: string, signal: AbortSignal): AbortedError {
  return new AbortedError(`${what} was aborted by its signal`, { cause: signal.reason })
}

/** Lets `controller` abort with `signal`, until `unlink` is called. */
export function linkedController(
  controller: AbortController,
  signal: AbortSignal | undefined,
): { readonly controller: AbortController; readonly unlink: () => void } {
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort)
  if (signal?.aborted) abort()
  return { controller, unlink: () => signal?.removeEventListener('abort', abort) }
}

export interface Bounds {
  readonly what: string
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number
  readonly timeoutError?: () => Error
}

/**
 * Waits for `promise` within bounds. Leaves no timer and no listener behind; a late rejection of `promise` is not
 * unhandled.
 */
export function bounded<T>(platform: ClientPlatform, promise: Promise<T>, bounds: Bounds): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const { signal, timeoutMs = Number.POSITIVE_INFINITY, timeoutError } = bounds
    const finish = () => {
      cancel()
      signal?.removeEventListener('abort', aborted)
    }
    const aborted = () => {
      finish()
      reject(abortedError(bounds.what, signal as AbortSignal))
    }
    const timedOut = () => {
      finish()
      reject(timeoutError?.() ?? new AbortedError(`${bounds.what} took longer than ${timeoutMs} ms`))
    }
    const cancel = after(platform, timeoutMs, timedOut, true)
    promise.then(
      (value) => {
        finish()
        resolve(value)
      },
      (error: unknown) => {
        finish()
        reject(error)
      },
    )
    if (signal?.aborted) aborted()
    else signal?.addEventListener('abort', aborted)
  })
}

/** Waits until `promise` has settled, or `timeoutMs` have passed; never rejects. */
export function settled(platform: ClientPlatform, promise: Promise<unknown>, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = after(platform, timeoutMs, resolve, true)
    const done = () => {
      cancel()
      resolve()
    }
    promise.then(done, done)
  })
}

export function delay(platform: ClientPlatform, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    after(platform, delayMs, resolve, true)
  })
}
