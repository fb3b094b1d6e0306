/** One server-sent event. */
export interface SseEvent {
  readonly kind: string
  readonly id: string
  readonly data: string
}

/** Parses a stream of server-sent events, whatever its chunk boundaries. */
export class SseParser {
  #rest = ''

  push(piece: string): SseEvent[] {
    const blocks = (this.#rest + piece).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    return blocks.flatMap((block) => {
      const sent = { kind: '', id: '', data: '' }
      for (const line of block.split('\n')) {
        const colon = line.indexOf(': ')
        const value = line.slice(colon + 2)
        if (line.startsWith('event:')) sent.kind = value
        else if (line.startsWith('id:')) sent.id = value
        else if (line.startsWith('data:')) sent.data = value
      }
      return sent.kind === '' ? [] : [sent]
    })
  }
}
