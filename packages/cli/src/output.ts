import { type Cell, type Heading, tableLines } from './table.js'

/** Prints one JSON document as a line; bigints become decimal strings. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? String(part) : part))}\n`)
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Prints a note to stderr: stdout is for output that scripts read. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Formats rows under headings; on a terminal in colour, and cut to its width. */
export function table(headings: readonly Heading[], rows: readonly (readonly Cell[])[]): string {
  return tableLines(headings, rows, process.stdout.isTTY ? process.stdout.columns : undefined).join('\n')
}

/** Formats a length of time: `850ms`, `9.5s`, `4m 05s`, `3h 12m`, `2d 04h`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return '-'
  if (!Number.isFinite(ms)) return 'unlimited'
  if (ms < 1000) return `${Math.round(ms)}ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(1)}s`
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h ${two((seconds % 3600) / 60)}m`
  return `${Math.floor(seconds / 86_400)}d ${two((seconds % 86_400) / 3600)}h`
}
