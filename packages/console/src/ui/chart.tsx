import type { JSX } from 'preact'

const WIDTH = 120
const HEIGHT = 28

/** A small chart of the latest values, the newest at the right. Undefined values leave a gap. */
export function Chart(props: {
  values: readonly (number | undefined)[]
  label: string
  /** Length of the axis, even with fewer values. */
  length: number
  /** The minimal end of the axis, so that noise stays small. */
  least: number
  format: (value: number) => string
}): JSX.Element {
  const { values, label, length, least, format } = props
  const known = values.filter((value) => value !== undefined)
  const most = Math.max(least, ...known)
  const last = values.at(-1)
  const said = last === undefined ? 'unknown now' : `${format(last)} now`
  return (
    <figure class="chart">
      <figcaption>
        {label} <b class="number">{last === undefined ? '–' : format(last)}</b>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${said}, at most ${format(Math.max(0, ...known))} in the last two minutes`}
      >
        <line class="axis" x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
        {pieces(values, length).map((piece) => {
          const line = piece.map(
            ([x, value]) => `${x.toFixed(1)} ${(HEIGHT - 1 - (value / most) * (HEIGHT - 3)).toFixed(1)}`,
          )
          const first = piece[0]?.[0] ?? 0
          const end = piece.at(-1)?.[0] ?? 0
          return (
            <g key={first}>
              <path class="area" d={`M${first} ${HEIGHT} L${line.join(' L')} L${end} ${HEIGHT}Z`} />
              <path class="line" d={`M${line.join(' L')}`} />
            </g>
          )
        })}
      </svg>
    </figure>
  )
}

/** Runs of known values as points: position on the axis, and value. */
function pieces(values: readonly (number | undefined)[], length: number): [x: number, value: number][][] {
  const found: [number, number][][] = [[]]
  values.forEach((value, i) => {
    if (value === undefined) found.push([])
    else found.at(-1)?.push([((length - values.length + i) / Math.max(1, length - 1)) * WIDTH, value])
  })
  return found.filter((piece) => piece.length > 0)
}
