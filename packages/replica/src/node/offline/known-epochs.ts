import { existsSync, readFileSync } from 'node:fs'
import { EPOCH_MAX, InvalidError, StorageError } from '@leasehold/core'
import { damaged } from '../../storage/storage-errors.js'
import { appendDurably } from './durable-files.js'

/** An epoch that has been used, and where it was found. */
export interface KnownEpoch {
  readonly epoch: number
  readonly from: string
}

/** One line of the notes next to a backup: a restore that was started. */
interface Note {
  readonly epoch: number
  readonly at: string
  readonly data: string
  readonly cluster: string
}

export function noteFile(backup: string): string {
  return `${backup}.epochs`
}

/** Returns the epochs of earlier restores of this file. @throws StorageError when the notes are unreadable */
export function notedEpochs(backup: string): KnownEpoch[] {
  return readNotes(backup).map(({ epoch, at, data }) => ({ epoch, from: `restored into ${data} at ${at}` }))
}

/**
 * Records next to the backup that it is being restored, before the new service exists.
 * @throws StorageError when the note cannot be written, or another restore has taken the same epoch
 */
export function noteEpoch(backup: string, note: Note): void {
  const file = noteFile(backup)
  try {
    appendDurably(file, `${JSON.stringify(note)}\n`)
  } catch (cause) {
    throw new StorageError(`cannot note the new epoch in ${file}: ${(cause as Error).message}`, {
      cause,
      hint: 'copy the backup, and its .epochs file if there is one, to a folder that can be written',
    })
  }
  const first = readNotes(backup).find(({ epoch }) => epoch === note.epoch)
  if (first?.cluster === note.cluster) return
  throw new StorageError(`another restore of ${backup} has taken epoch ${note.epoch} a moment ago`, {
    hint: 'run it again with the next --epoch',
  })
}

/**
 * Checks that an epoch is above every known one.
 * @throws InvalidError whose hint names the next valid epoch
 */
export function checkEpoch(epoch: number | undefined, known: readonly KnownEpoch[]): number {
  const highest = Math.max(...known.map((one) => one.epoch))
  const list = known.map((one) => `${one.epoch} (${one.from})`).join(', ')
  if (highest >= EPOCH_MAX) throw new InvalidError(`epoch ${highest} is the last one: no service can follow it`)
  const hint = `--epoch ${highest + 1}, or higher if a copy may have been restored elsewhere: no program can know that`
  if (epoch === undefined) throw new InvalidError(`--epoch is missing; known epochs: ${list}`, { hint })
  if (!Number.isSafeInteger(epoch) || epoch < 1 || epoch > EPOCH_MAX) {
    throw new InvalidError(`the epoch is a whole number from 1 to ${EPOCH_MAX}, not ${epoch}`, { hint })
  }
  if (epoch > highest) return epoch
  throw new InvalidError(`epoch ${epoch} is not above every epoch that has been used; known epochs: ${list}`, { hint })
}

function readNotes(backup: string): Note[] {
  const file = noteFile(backup)
  if (!existsSync(file)) return []
  let offset = 0
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const at = offset
      offset += Buffer.byteLength(line) + 1
      return line === '' ? [] : [parseNote(file, at, line)]
    })
}

function parseNote(file: string, offset: number, line: string): Note {
  try {
    const note = JSON.parse(line) as Note
    if (Number.isSafeInteger(note.epoch)) return note
  } catch {
    // Reported below.
  }
  throw damaged(file, offset, 'a line of it cannot be read', 'if a crash cut the last line off, delete that line')
}
