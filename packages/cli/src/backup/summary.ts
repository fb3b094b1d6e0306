import type { KnownEpoch, MovedHold } from '@leasehold/replica/node'

/** Bound on the holds that are printed; `--json` prints all. */
const HOLDS_SHOWN = 20

const UNITS = ['KiB', 'MiB', 'GiB'] as const

/** `812 bytes`, `4.2 KiB`, `1.1 GiB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`
  let value = bytes / 1024
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${value.toFixed(1)} ${UNITS[unit]}`
}

/** `3 holds`, `1 hold`. */
export function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

/** Describes the new epoch and the known ones. */
export function epochLines(epoch: number, known: readonly KnownEpoch[]): string[] {
  return [
    `the epoch is now ${epoch}; known before: ${known.map((one) => `${one.epoch} (${one.from})`).join(', ')}`,
    'copies may have been restored elsewhere with an equal or higher epoch: no program can know that',
  ]
}

/** Describes the persistent holds, which have new ids. */
export function holdLines(holds: readonly MovedHold[]): string[] {
  if (holds.length === 0) return ['it had no persistent holds']
  const shown = holds.slice(0, HOLDS_SHOWN).map(({ from, to, names, client }) => {
    return `  ${names.join(', ')}: ${from} is now ${to}${client === '' ? '' : ` (${client})`}`
  })
  const rest = holds.length - shown.length
  const more = rest > 0 ? [`  and ${rest} more: see --json`] : []
  return [
    `${count(holds.length, 'persistent hold')} stayed, under new ids (end one with leasehold steal):`,
    ...shown,
    ...more,
  ]
}
