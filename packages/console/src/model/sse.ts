/** One server-sent event. */
export interface Sent {
  readonly kind: string
  readonly id: string
  readonly data: string
}

/** Takes a stream of server-sent events apart, however it was cut into pieces. */
export class SseParser {
  #rest = ''

  push(piece: string): Sent[] {
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
