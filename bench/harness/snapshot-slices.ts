import { PerformanceObserver } from 'node:perf_hooks'
import type { LockState } from '@leasehold/core'
// How a member makes a snapshot is no part of the package's interface.
import { StateEncoder } from '../../packages/replica/src/snapshots/state-encoder.js'

const SLICE_BYTES = 1024 * 1024

export interface Span {
  readonly start: number
  readonly end: number
}

/** How long a snapshot keeps a member from everything else: in all, and at a stretch. Milliseconds. */
export interface SlicesMeasured {
  readonly slices: number
  /** The longest one as it was on the clock, and without the garbage collection in it. */
  readonly longestMs: number
  readonly longestWithoutGcMs: number
  /** 99 of 100 are no longer than that, without garbage collection. */
  readonly p99WithoutGcMs: number
  /** The most processor time in one, with that of the threads of the collector. */
  readonly longestCpuMs: number
  /** Longest pause of the collector meanwhile. */
  readonly longestGcMs: number
  readonly workMs: number
  readonly untilReadyMs: number
  readonly bytes: number
}

/** Makes a snapshot as a member does; `between` runs before each slice but the first. */
export async function snapshotInSlices(state: LockState, between: () => void): Promise<SlicesMeasured> {
  const collections: Span[] = []
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      collections.push({ start: startTime, end: startTime + duration })
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  const slices: (Span & { readonly cpuMs: number })[] = []
  const timed = (run: () => void): void => {
    const before = process.cpuUsage()
    const start = performance.now()
    run()
    const end = performance.now()
    const { user, system } = process.cpuUsage(before)
    slices.push({ start, end, cpuMs: (user + system) / 1000 })
  }
  const bytes = await new Promise<number>((resolve) => {
    const clock = {
      monotonicMs: () => Math.trunc(performance.now()),
      wallMs: () => Date.now(),
      after(delayMs: number, callback: () => void) {
        const timer = setTimeout(() => {
          between()
          timed(callback)
        }, delayMs)
        return () => clearTimeout(timer)
      },
    }
    timed(() => {
      const guard = (action: () => void): void => action()
      const done = (made: { readonly bytes: number }): void => resolve(made.bytes)
      new StateEncoder(state, { clock, sliceBytes: SLICE_BYTES, guard, done }).start()
    })
  })
  // The observer is told of a collection some time after it.
  await new Promise((resolve) => setTimeout(resolve, 50))
  observer.disconnect()
  const lengths = slices.map((slice) => slice.end - slice.start)
  const alone = slices.map((slice) => slice.end - slice.start - overlap(slice, collections)).sort((a, b) => a - b)
  return {
    slices: slices.length,
    longestMs: rounded(Math.max(...lengths)),
    longestWithoutGcMs: rounded(alone.at(-1) as number),
    p99WithoutGcMs: rounded(alone[Math.floor((alone.length - 1) * 0.99)] as number),
    longestCpuMs: rounded(Math.max(...slices.map(({ cpuMs }) => cpuMs))),
    longestGcMs: rounded(Math.max(0, ...collections.map(({ start, end }) => end - start))),
    workMs: Math.round(lengths.reduce((sum, length) => sum + length, 0)),
    untilReadyMs: Math.round((slices.at(-1) as Span).end - (slices[0] as Span).start),
    bytes,
  }
}

export function overlap(slice: Span, collections: readonly Span[]): number {
  let ms = 0
  for (const { start, end } of collections) ms += Math.max(0, Math.min(end, slice.end) - Math.max(start, slice.start))
  return ms
}

function rounded(ms: number): number {
  return Number(ms.toPrecision(3))
}
