import type { JSX } from 'preact'
import { type Dot, progressOf } from '../view-model/flights.js'
import type { Simulation } from '../view-model/simulation.js'
import type { Layout, Spot } from './layout.js'

interface LinksProps {
  readonly simulation: Simulation
  readonly layout: Layout
  readonly pairs: readonly (readonly [string, string])[]
  readonly onLink: (a: string, b: string) => void
}

/** All lines. A click cuts or heals one. */
export function Links({ simulation, layout, pairs, onLink }: LinksProps): JSX.Element {
  return (
    <g class="links">
      {pairs.map(([a, b]) => {
        const from = layout.spots.get(a)
        const to = layout.spots.get(b)
        if (from === undefined || to === undefined) return null
        const isCut = simulation.injector.isCut(a, b)
        const line = { x1: from.x, y1: from.y, x2: to.x, y2: to.y }
        const [x, y] = between(from, to, 0.5)
        return (
          <g
            key={`${a}|${b}`}
            class={`link ${isCut ? 'cut' : ''}`}
            role="button"
            // With the keyboard, links are among the actions of what is selected.
            tabindex={-1}
            data-link={`${a}|${b}`}
            aria-label={`link between ${a} and ${b}`}
            aria-pressed={isCut}
            onClick={() => onLink(a, b)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return
              event.preventDefault()
              onLink(a, b)
            }}
          >
            <title>{isCut ? `${a} – ${b} is cut: click to heal` : `${a} – ${b}: click to cut`}</title>
            <line class="hit" {...line} />
            <line class="line" {...line} />
            {isCut && <path class="scissors" d={`M${x - 7} ${y - 7}l14 14m0 -14l-14 14`} />}
          </g>
        )
      })}
    </g>
  )
}

interface DotsProps {
  readonly simulation: Simulation
  readonly layout: Layout
  readonly pictureMs: number
}

const QUIET = /^(renew|read|ok)/

/** Frames on their way; below the boxes, so that they come out of them and go into them. */
export function Dots({ simulation, layout, pictureMs }: DotsProps): JSX.Element {
  return (
    <g class="dots" aria-hidden="true">
      {simulation.flights.dots.map((dot) => {
        const from = layout.spots.get(dot.from)
        const to = layout.spots.get(dot.to)
        if (from === undefined || to === undefined) return null
        const progress = progressOf(dot, simulation.nowUs, pictureMs)
        const [x, y] = between(edge(from, to), edge(to, from), Math.max(0, progress))
        const tone = toneOf(dot)
        return (
          <g key={dot.number} class={`dot ${dot.kind} ${tone} ${dot.arriveUs === undefined ? 'lost' : ''}`}>
            <circle cx={x} cy={y} r={dot.label === undefined ? 3 : 5.5} />
            {dot.label !== undefined && !QUIET.test(dot.label) && (
              <text x={x + 9} y={y + 4}>
                {wordOf(dot)}
              </text>
            )}
          </g>
        )
      })}
    </g>
  )
}

/** The colour of its client. */
export function toneOf({ from, to }: { readonly from: string; readonly to: string }): string {
  const client = /^C(\d)$/.exec(from) ?? /^C(\d)$/.exec(to)
  return client === null ? '' : `c${client[1]}`
}

function wordOf({ label = '', token }: Dot): string {
  if (token === undefined) return label
  if (label.startsWith('granted')) return `granted, token ${token}`
  return `${label} · token ${token}`
}

export function between(a: Pick<Spot, 'x' | 'y'>, b: Pick<Spot, 'x' | 'y'>, t: number): [number, number] {
  return [a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t]
}

/** Where the line to another box leaves this one. */
export function edge(from: Spot, to: Spot): { readonly x: number; readonly y: number } {
  const dx = to.x - from.x
  const dy = to.y - from.y
  const t = Math.min(dx === 0 ? 1 : Math.abs(from.w / 2 / dx), dy === 0 ? 1 : Math.abs(from.h / 2 / dy), 1)
  return { x: from.x + dx * t, y: from.y + dy * t }
}
