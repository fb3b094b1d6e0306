import * as fs from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The result of one check, with a hint if it failed. */
export interface Check {
  readonly check: string
  readonly ok: boolean
  readonly text: string
  readonly hint?: string | undefined
}

/** File systems on which data is not durable, by their `statfs` type. */
const UNSAFE_SYSTEMS = new Map([
  [0x01021994, 'tmpfs: lost at a power failure'],
  [0x858458f6, 'ramfs: lost at a power failure'],
  [0x6969, 'NFS: a flush may be acknowledged before it is durable, and file locks are unreliable'],
  [0x517b, 'SMB: a flush may be acknowledged before it is durable'],
  [0xfe534d42, 'SMB: a flush may be acknowledged before it is durable'],
])

const FLUSHES = 100
const FLUSH_BYTES = 4096
const FLUSH_P99_GOOD_MS = 100
const FILES_GOOD = 8192
const WATCH_MS = 1500
const NAP_MS = 5
/** The longest acceptable pause: a twentieth of the default TTL. */
const PAUSE_GOOD_MS = 500
/** The clock rate error that local deadlines tolerate. */
const RATE_GOOD_PPM = 50_000

/** Checks the file system and the flush latency of a data folder. */
export function diskChecks(dir: string): Check[] {
  fs.mkdirSync(dir, { recursive: true })
  const type = fs.statfsSync(dir).type
  const unsafe = UNSAFE_SYSTEMS.get(type)
  const system: Check =
    unsafe === undefined
      ? {
          check: 'data',
          ok: true,
          text: `${dir} is on a durable file system, judging by its type`,
        }
      : { check: 'data', ok: false, text: `${dir} is on ${unsafe}`, hint: 'use a folder on a local disk' }
  return [system, flushCheck(dir)]
}

function flushCheck(dir: string): Check {
  const file = join(dir, `doctor-${process.pid}.tmp`)
  const fd = fs.openSync(file, 'wx')
  try {
    const block = Buffer.alloc(FLUSH_BYTES, 1)
    fs.writeSync(fd, Buffer.alloc(FLUSH_BYTES * FLUSHES))
    fs.fsyncSync(fd)
    const times: number[] = []
    for (let i = 0; i < FLUSHES; i++) {
      const start = performance.now()
      fs.writeSync(fd, block, 0, FLUSH_BYTES, i * FLUSH_BYTES)
      fs.fdatasyncSync(fd)
      times.push(performance.now() - start)
    }
    times.sort((a, b) => a - b)
    const [median, p99] = [times[FLUSHES >> 1] as number, times[Math.floor(FLUSHES * 0.99)] as number]
    const text = `one flush: median ${median.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`
    if (p99 <= FLUSH_P99_GOOD_MS) return { check: 'flush', ok: true, text }
    return {
      check: 'flush',
      ok: false,
      text,
      hint: 'every commit waits for a flush: use a faster or less busy disk',
    }
  } finally {
    fs.closeSync(fd)
    fs.rmSync(file, { force: true })
  }
}

/** Checks the limit of open files; undefined where the platform does not report it. */
export function filesCheck(limits = '/proc/self/limits'): Check | undefined {
  let text: string
  try {
    text = fs.readFileSync(limits, 'utf8')
  } catch {
    return undefined
  }
  const soft = /^Max open files\s+(\S+)/m.exec(text)?.[1]
  if (soft === undefined) return undefined
  const ok = soft === 'unlimited' || Number(soft) >= FILES_GOOD
  const hint = `each connection needs one: raise the limit to 65536 (ulimit -n, LimitNOFILE)`
  return { check: 'files', ok, text: `at most ${soft} open files`, ...(ok ? {} : { hint }) }
}

/** Measures the longest pause of this process, and the drift between its clocks. */
export async function clockChecks(): Promise<Check[]> {
  const [from, wallFrom] = [performance.now(), Date.now()]
  let longest = 0
  for (let last = from; last - from < WATCH_MS; ) {
    await sleep(NAP_MS)
    const now = performance.now()
    longest = Math.max(longest, now - last - NAP_MS)
    last = now
  }
  const ppm = Math.round(((Date.now() - wallFrom) / (performance.now() - from) - 1) * 1_000_000)
  const pauses = `longest pause ${longest.toFixed(0)} ms in ${WATCH_MS} ms`
  const rate = `the wall clock runs ${Math.abs(ppm)} ppm ${ppm < 0 ? 'slower' : 'faster'} than the monotonic clock`
  return [
    longest <= PAUSE_GOOD_MS
      ? { check: 'pauses', ok: true, text: pauses }
      : {
          check: 'pauses',
          ok: false,
          text: pauses,
          hint: 'this machine is too busy for a short TTL: give it more CPU, or use a longer TTL',
        },
    Math.abs(ppm) <= RATE_GOOD_PPM
      ? { check: 'clock', ok: true, text: rate }
      : {
          check: 'clock',
          ok: false,
          text: rate,
          hint: 'local deadlines tolerate 5 %: is the time being set right now? Check the time service',
        },
  ]
}
