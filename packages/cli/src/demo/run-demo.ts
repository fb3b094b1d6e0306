import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatToken, type Serial, tokenOf } from '@leasehold/core'
import pc from 'picocolors'
import { print } from '../output.js'
import { runHalf } from './scenario.js'
import { listEvents, drawTimeline } from './timeline.js'
import { Children, startService } from './processes.js'
import { dropRecord } from './record.js'
import type { Half, StorePlace } from './model.js'

/** Bound on all waits together: the demo ends within 20 s. */
const TIME_LIMIT_MS = 18_000
const EXIT_INTERRUPTED = 130

export interface DemoOptions {
  readonly json?: boolean
  readonly postgres?: string
}

/** Runs both halves, and prints each at its end, unless `json`. Removes all processes and files. */
export async function runDemo(options: DemoOptions): Promise<Half[]> {
  const end = performance.now() + TIME_LIMIT_MS
  const remaining = () => Math.max(1, end - performance.now())
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-demo-'))
  const children = new Children()
  const places: StorePlace[] = []
  const clear = () => {
    children.killAll()
    rmSync(folder, { recursive: true, force: true })
  }
  const interrupted = () => {
    clear()
    process.exit(EXIT_INTERRUPTED)
  }
  process.once('SIGINT', interrupted)
  process.once('SIGTERM', interrupted)
  try {
    const service = await startService(children, join(folder, 'service'), remaining())
    const halves: Half[] = []
    for (const guarded of [false, true]) {
      if (options.json !== true) print(heading(guarded))
      const place = placeOf(options, folder, guarded)
      places.push(place)
      const half = await runHalf({ children, folder, url: service.url, remaining }, guarded, place)
      halves.push(half)
      if (options.json !== true) print(`${listEvents(half)}\n\n${drawTimeline(half)}\n\n${verdict(half)}`)
    }
    await service.stop()
    return halves
  } finally {
    process.off('SIGINT', interrupted)
    process.off('SIGTERM', interrupted)
    for (const place of places) await dropRecord(place)
    clear()
  }
}

function placeOf(options: DemoOptions, folder: string, guarded: boolean): StorePlace {
  const name = guarded ? 'guarded' : 'plain'
  if (options.postgres === undefined) return { kind: 'file', file: join(folder, `${name}-invoice`) }
  return { kind: 'pg', url: options.postgres, schema: `leasehold_demo_${process.pid}_${name}` }
}

function heading(guarded: boolean): string {
  const title = guarded ? '2  With a guard: the resource checks the fencing token' : '1  Without a guard: only a lock'
  const note = guarded
    ? `\n${pc.dim(`   tokens are shown without their epoch: 33 is ${formatToken(tokenOf(1, 33 as Serial))} in full`)}`
    : ''
  return `\n${pc.bold(title)}${note}\n`
}

function verdict(half: Half): string {
  const { record, right } = half
  if (!half.asExpected) return pc.red(`  Not as expected: the record is ${record}.`)
  return half.guarded
    ? `  ${pc.green('Right:')} the record is ${pc.bold(String(record))}. A was refused with ${half.refused}, and repeated its work under a new hold.\n`
    : `  ${pc.red('Lost:')} the record is ${pc.bold(String(record))} instead of ${right}. The update of B was overwritten without an error.\n`
}

/** Returns a half as JSON. */
export function halfJson(half: Half): Record<string, unknown> {
  const { events, refused, ...rest } = half
  const timeline = events.map(({ atMs, actor, what }) => ({ atMs: Math.round(atMs), actor, ...what }))
  return { ...rest, refused: refused ?? null, lostUpdate: half.record !== half.right, timeline }
}
