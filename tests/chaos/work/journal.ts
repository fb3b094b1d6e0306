import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { Operation, Value } from '@leasehold/lab'

/** Which of the checker's models judges an operation. */
export type Judge = 'fenced-mutex' | 'rw' | 'permits' | 'register'

export interface Call {
  readonly judge: Judge
  readonly op: 'acquire' | 'release' | 'read' | 'cas' | 'write'
  readonly key: string
  readonly owner?: string
  readonly mode?: 'exclusive' | 'shared'
  readonly permits?: number
  readonly token?: bigint
  readonly slot?: number
  readonly value?: Value
}

export interface Answer {
  readonly token?: bigint
  readonly slot?: number
  readonly result?: Value
}

/** What is no operation of a model, but must be remembered. */
export type Note =
  /** A unit's write that the guarded resource has acknowledged. */
  | {
      readonly note: 'written'
      readonly lock: string
      readonly token: string
      readonly before: number
      readonly after: number
    }
  /** The guard has refused a write. */
  | { readonly note: 'refused'; readonly lock: string; readonly token: string }
  /** A hold that outlives its session: acquired, about to be released, released. */
  | { readonly note: 'kept' | 'giving' | 'given'; readonly lock: string; readonly id: string }
  /** A hold that must live as long as its process: taken, and seen lost. */
  | { readonly note: 'long' | 'long-lost'; readonly lock: string; readonly id: string; readonly why?: string }
  /** An operation that ended in an error, for the statistics. */
  | { readonly note: 'error'; readonly of: string; readonly code: string }

type Line =
  | ({ readonly at: number; readonly n: number; readonly type: 'invoke' } & Call)
  | ({ readonly at: number; readonly n: number; readonly type: 'ok' | 'fail' | 'info' } & Answer)
  | ({ readonly at: number; readonly type: 'note' } & Note)

/** Microseconds since the machine started: one clock for all processes on it. */
export function machineMicros(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

export interface OpenCall {
  ok(answer?: Answer): void
  fail(): void
  unknown(): void
}

/** What one client process saw, line by line in a file: what was written is there however the process ends. */
export class Journal {
  readonly #fd: number
  #calls = 0

  constructor(file: string) {
    this.#fd = openSync(file, 'a')
  }

  /** Call this before the operation is sent. `at`: when it began, if that was earlier. */
  invoke(call: Call, at: number = machineMicros()): OpenCall {
    const n = ++this.#calls
    this.#write({ at, n, type: 'invoke', ...call })
    const end = (type: 'ok' | 'fail' | 'info', answer: Answer = {}): void =>
      this.#write({ at: machineMicros(), n, type, ...answer })
    return { ok: (answer) => end('ok', answer), fail: () => end('fail'), unknown: () => end('info') }
  }

  note(note: Note): void {
    this.#write({ at: machineMicros(), type: 'note', ...note })
  }

  close(): void {
    closeSync(this.#fd)
  }

  #write(line: Line): void {
    writeSync(this.#fd, `${JSON.stringify(line, (_key, value) => (typeof value === 'bigint' ? `${value}n` : value))}\n`)
  }
}

export interface Recorded {
  readonly operations: ReadonlyMap<Judge, readonly Operation[]>
  readonly notes: readonly (Note & { readonly process: string; readonly at: number })[]
}

/** What all client processes saw, together. */
export function readJournals(files: readonly { readonly process: string; readonly file: string }[]): Recorded {
  const operations = new Map<Judge, Operation[]>()
  const notes: (Note & { process: string; at: number })[] = []
  for (const { process, file } of files) {
    const open = new Map<number, Operation & { judge: Judge }>()
    for (const line of linesOf(file)) {
      if (line.type === 'note') notes.push({ ...line, process })
      else if (line.type === 'invoke') {
        const { at, n, type: _, ...call } = line
        open.set(n, { ...call, process, outcome: 'unknown', invokedAt: at })
      } else {
        const call = open.get(line.n)
        if (call === undefined) throw new Error(`${file}: an answer to the unknown call ${line.n}`)
        const { at, n, type, ...answer } = line
        open.set(n, { ...call, ...answer, outcome: type === 'info' ? 'unknown' : type, returnedAt: at })
      }
    }
    for (const { judge, ...operation } of open.values()) {
      const of = operations.get(judge) ?? []
      of.push(operation)
      operations.set(judge, of)
    }
  }
  for (const of of operations.values()) of.sort((a, b) => a.invokedAt - b.invokedAt)
  return { operations, notes: notes.sort((a, b) => a.at - b.at) }
}

function linesOf(file: string): Line[] {
  const texts = readFileSync(file, 'utf8').split('\n')
  // A process that was killed may have left half a line.
  texts.pop()
  return texts.map((text) =>
    JSON.parse(text, (_key, value) =>
      typeof value === 'string' && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : (value as unknown),
    ),
  ) as Line[]
}
