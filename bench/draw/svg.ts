import { type AllResults, grouped, isOurs, type Workload } from './bars.js'

const WIDTH = 880
const MARGIN = 20
const NAME_WIDTH = 170
const VALUE_WIDTH = 70
const BAR = 15
const STEP = 21
const HEAD = 34

/** Colours for both kinds of background; the reader's setting decides. */
const STYLE = `
  .page { fill: #ffffff } .text { fill: #1f2328 } .soft { fill: #59636e } .ours { fill: #0969da } .peer { fill: #afb8c1 } .line { stroke: #1f2328 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #f0f6fc } .soft { fill: #9198a1 } .ours { fill: #58a6ff } .peer { fill: #484f58 } .line { stroke: #f0f6fc }
  }
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif } .title { font-weight: 600; font-size: 13px }`

/** All workloads as bars, one panel each; the thin line is from the lowest to the highest round. */
export function svgOf({ workloads, rounds, seconds }: AllResults): string {
  const panels: string[] = []
  let y = MARGIN
  for (const workload of workloads) {
    panels.push(panelOf(workload, y))
    y += HEAD + workload.systems.length * STEP + 14
  }
  const note = `Median of ${rounds} rounds of ${seconds} s, all systems in turn on one machine; thin lines from the lowest to the highest round.`
  const height = y + 20
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Pairs of acquire and release per second of Leasehold and other systems">`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${WIDTH}" height="${height}" rx="6"/>`,
    ...panels,
    `<text class="soft" x="${MARGIN}" y="${y + 6}">${note}</text>`,
    '</svg>',
    '',
  ].join('\n')
}

function panelOf({ title, systems }: Workload, top: number): string {
  const left = MARGIN + NAME_WIDTH
  const room = WIDTH - left - VALUE_WIDTH - MARGIN
  const most = Math.max(...systems.map((one) => one.pairsPerSecond.max))
  const at = (value: number): number => Number(((value / most) * room).toFixed(1))
  const rows = systems.map(({ name, pairsPerSecond: { min, median, max } }, i) => {
    const y = top + HEAD + i * STEP
    const middle = y + BAR / 2
    const kind = isOurs(name) ? 'ours' : 'peer'
    return [
      `<text class="text" x="${left - 8}" y="${y + 12}" text-anchor="end">${escaped(name)}</text>`,
      `<rect class="${kind}" x="${left}" y="${y}" width="${Math.max(1, at(median))}" height="${BAR}" rx="2"/>`,
      `<line class="line" x1="${left + at(min)}" x2="${left + at(max)}" y1="${middle}" y2="${middle}"/>`,
      `<text class="text" x="${left + at(max) + 6}" y="${y + 12}">${grouped(median)}</text>`,
    ].join('')
  })
  return `<text class="title text" x="${MARGIN}" y="${top + 16}">${escaped(title)}: pairs per second</text>\n${rows.join('\n')}`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
