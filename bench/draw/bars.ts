import type { Spread } from '../harness/results-file.js'

export interface Workload {
  readonly title: string
  readonly tasks: number
  readonly systems: readonly {
    readonly name: string
    readonly pairsPerSecond: Spread
    readonly p50Ms: Spread
    readonly p99Ms: Spread
  }[]
}

export interface AllResults {
  readonly rounds: number
  readonly seconds: number
  readonly disk: { readonly appending: number; readonly overwriting: number }
  readonly systems: readonly {
    readonly name: string
    readonly version: string
    readonly how: string
    readonly lacks: string
  }[]
  readonly skipped: readonly { readonly name: string; readonly why: string }[]
  readonly workloads: readonly Workload[]
}

const WIDTH = 40
const NAME_WIDTH = 26

export function isOurs(name: string): boolean {
  return name.startsWith('leasehold')
}

export function grouped(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en').replaceAll(',', ' ') : String(value)
}

/** How many times the rate of our one member a peer's is contained in it, and of our three members in those of three. */
export function ratioTo(
  workload: Workload,
  name: string,
): { readonly ours: string; readonly ratio: number } | undefined {
  const ours = name.includes('three') ? 'leasehold, three members' : 'leasehold, one member'
  const rate = (wanted: string) => workload.systems.find((one) => one.name === wanted)?.pairsPerSecond.median
  const [own, other] = [rate(ours), rate(name)]
  if (own === undefined || other === undefined || isOurs(name)) return undefined
  return { ours, ratio: Number((own / other).toPrecision(3)) }
}

/** One bar for each system, the longest over the whole width; in brackets how many times ours is faster. */
export function terminalBars({ workloads, disk }: AllResults): string {
  const lines: string[] = []
  for (const workload of workloads) {
    const most = Math.max(...workload.systems.map((one) => one.pairsPerSecond.median))
    lines.push(`${workload.title}: pairs per second, median (lowest to highest)`)
    for (const { name, pairsPerSecond } of workload.systems) {
      const { min, median, max } = pairsPerSecond
      const bar = (isOurs(name) ? '█' : '▒').repeat(Math.max(1, Math.round((median / most) * WIDTH)))
      const ratio = ratioTo(workload, name)
      const times = ratio === undefined ? '' : `  [${ratio.ratio} ×]`
      const spread = `${grouped(median)} (${grouped(min)} to ${grouped(max)})`
      lines.push(`  ${name.padEnd(NAME_WIDTH)} ${bar.padEnd(WIDTH)} ${spread}${times}`)
    }
    lines.push('')
  }
  lines.push(
    `flushes per second of this disk: ${grouped(disk.appending)} appending, ${grouped(disk.overwriting)} overwriting`,
  )
  return `${lines.join('\n')}\n`
}
