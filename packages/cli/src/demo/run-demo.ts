import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatToken, type Serial, tokenOf } from '@leasehold/core'
import pc from 'picocolors'
import { print } from '../output.js'
import { playHalf } from './scenario.js'
import { diary, picture } from './timeline.js'
import { Children, startService } from './processes.js'
import { dropRecord } from './record.js'
import type { Half, StorePlace } from './model.js'

/** The demo ends by itself within 20 s: all its waits together get this long. */
const TIME_LIMIT_MS = 18_000
const EXIT_INTERRUPTED = 130

export interface DemoOptions {
  readonly json?: boolean
  readonly postgres?: string
}

/** Plays both halves, and prints them as they end unless `json`. Leaves nothing behind. */
export async function play(options: DemoOptions): Promise<Half[]> {
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
      const half = await playHalf({ children, folder, url: service.url, remaining }, guarded, place)
      halves.push(half)
      if (options.json !== true) print(`${diary(half)}\n\n${picture(half)}\n\n${verdict(half)}`)
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
  if (!half.asExpected) return pc.red(`  Not as expected: the record says ${record}.`)
  return half.guarded
    ? `  ${pc.green('Right:')} the record says ${pc.bold(String(record))}. A was refused with ${half.refused}, and did its work again under a new hold.\n`
    : `  ${pc.red('Lost:')} the record says ${pc.bold(String(record))} and should say ${right}. The update of B is gone, and nobody was told.\n`
}

/** A half as JSON. */
export function facts(half: Half): Record<string, unknown> {
  const { moments, refused, ...rest } = half
  const timeline = moments.map(({ atMs, actor, what }) => ({ atMs: Math.round(atMs), actor, ...what }))
  return { ...rest, refused: refused ?? null, lostUpdate: half.record !== half.right, timeline }
}
