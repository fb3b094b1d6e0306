import { HistoryError, type Operation } from '@leasehold/lab'
import { parseEdn } from './parse-edn.js'
import { parseJsonl } from './parse-jsonl.js'
import { parseLog } from './parse-log.js'

/** The reader of each format by the ending of the file's name. */
export const FORMATS: Readonly<Record<string, (text: string) => Operation[]>> = {
  log: parseLog,
  edn: parseEdn,
  txt: parseEdn,
  jsonl: parseJsonl,
}

/**
 * Reads a history by the ending of its file's name.
 * @throws HistoryError
 */
export function parseHistory(name: string, text: string): Operation[] {
  const ending = /\.([^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  const parse = Object.hasOwn(FORMATS, ending) ? FORMATS[ending] : undefined
  if (parse === undefined) {
    throw new HistoryError(`a history ends in .${Object.keys(FORMATS).join(', .')}: no format for ${name}`)
  }
  return parse(text)
}
