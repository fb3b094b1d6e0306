import { outColours } from './colours.js'
import { cut, fit, harmless, widthOf } from './terminal-text.js'

/** A cell with a colour. */
export interface Painted {
  readonly text: string
  readonly paint: (text: string) => string
}

export type Cell = string | Painted

/** The heading of a column. `whole`: its cells are never cut to make room, because a part of a token is a wrong token. */
export type Heading = string | { readonly title: string; readonly whole: true }

/** The least width to which a column is cut to make room for others. */
const NARROWEST = 6
const GAP = '  '

/**
 * Formats rows under headings, one line each. With `width`, the widest columns are cut until a line fits; a line that is still
 * too long is cut at its end.
 */
export function tableLines(
  headings: readonly Heading[],
  rows: readonly (readonly Cell[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  const cells = rows.map((row) => headings.map((_, column) => cellOf(row[column])))
  const titles = headings.map((heading) => (typeof heading === 'string' ? heading : heading.title))
  const natural = titles.map((title, column) =>
    Math.max(widthOf(title), ...cells.map((row) => widthOf((row[column] as Painted).text))),
  )
  const widths = narrowed(
    natural,
    headings.map((heading) => typeof heading === 'string'),
    width,
  )
  const line = (row: readonly Painted[]): string => {
    let left = width
    return row
      .map(({ text, paint }, column) => {
        const last = row.slice(column + 1).every((cell) => cell.text === '')
        const room = Math.min(widths[column] as number, left)
        left -= room + GAP.length
        return room <= 0 ? '' : paint(last ? cut(text, room) : fit(text, room) + (left > 0 ? GAP : ''))
      })
      .join('')
  }
  const heads = titles.map((text) => ({ text, paint: outColours.bold }))
  return [line(heads), ...cells.map(line)]
}

function cellOf(cell: Cell | undefined): Painted {
  const { text, paint } = typeof cell === 'object' ? cell : { text: cell ?? '', paint: (plain: string) => plain }
  return { text: harmless(text), paint }
}

/** Narrows the widest columns that may be cut until all fit. */
function narrowed(natural: readonly number[], mayBeCut: readonly boolean[], width: number): number[] {
  const widths = [...natural]
  const room = width - GAP.length * (widths.length - 1)
  let excess = widths.reduce((sum, one) => sum + one, 0) - room
  for (; excess > 0; excess--) {
    const widest = Math.max(...widths.filter((_, column) => mayBeCut[column]))
    if (widest <= NARROWEST) break
    widths[widths.findLastIndex((one, column) => mayBeCut[column] && one === widest)] = widest - 1
  }
  return widths
}
