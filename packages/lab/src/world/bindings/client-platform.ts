import type { ClientPlatform } from '@leasehold/client'
import type { Process } from '../process.js'

/** The client's machine, as the world has it. The process must be one that uses promises. */
export function clientPlatform(process: Process, report?: (message: string, error: unknown) => void): ClientPlatform {
  if (!process.promises) throw new Error(`${process.name} must be spawned with { promises: true }`)
  const { machine, world } = process
  const bytes = process.random('client.bytes')
  const jitter = process.random('client.jitter')
  return {
    monotonicMs: () => machine.clockUs('monotonic') / 1000,
    // Not in whole milliseconds: then reading a client's state more often would move its deadlines by a part of one.
    wallMs: () => machine.clockUs('wall') / 1000,
    after: (delayMs, callback) => process.after(delayMs * 1000, callback),
    soon: (callback) => process.soon(callback),
    randomBytes: (length) => bytes.bytes(length),
    random: () => jitter.below(2 ** 30) / 2 ** 30,
    abortController: () => new AbortController(),
    date: (wallMs) => new Date(wallMs),
    report: report ?? ((_message, error) => world.uncaught(process, error)),
  }
}
