import type { Entry } from '@leasehold/raft'
import { Log, type LogOptions, type LogRecord } from '../../src/log/log.js'
import type { Disk } from '../../src/platform.js'
import { SimDisk } from './sim-disk.js'

export function entry(index: number, size = 20, term = 1): Entry {
  return { term, index, kind: 'normal', data: new Uint8Array(size).fill(1 + (index % 250)) }
}

export function entries(from: number, to: number, size = 20, term = 1): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, i) => entry(from + i, size, term))
}

const DEFAULTS: LogOptions = {
  identity: 77,
  segmentBytes: 8192,
  spareSegments: 2,
  snapshot: { index: 0, term: 0 },
  changed() {},
}

/** Opens a log; throws what `open` reports. */
export function openLog(disk: SimDisk, options: Partial<LogOptions> = {}): Log {
  for (const name of disk.list()) if (name.endsWith('.tmp')) disk.remove(name)
  let result: Log | undefined
  let failure: Error | undefined
  Log.open(disk, { ...DEFAULTS, ...options }, (error, log) => {
    failure = error
    result = log
  })
  disk.run()
  if (!result) throw failure ?? new Error('open never came to an end')
  return result
}

/** Appends and waits; throws what made it fail. */
export function append(disk: SimDisk, log: Log, record: LogRecord): void {
  let done = false
  let failure: Error | undefined
  log.append(record, (error) => {
    done = true
    failure = error
  })
  disk.run()
  if (failure) throw failure
  if (!done) throw new Error('append never came to an end')
}

export function indexes(log: Log): number[] {
  return log.recovered.map((e) => e.index)
}

export function segments(disk: Disk): string[] {
  return disk.list().filter((name) => name.startsWith('log-'))
}
