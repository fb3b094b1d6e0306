/** So many hops without a real turn of the event loop. */
const TICKS_PER_TURN = 1024

/**
 * Lets every promise continue that can. The only thing that the world uses of the machine that it runs on; its
 * outcome does not depend on how long it takes.
 *
 * In Node a `process.nextTick` that is asked for inside a promise comes when all promises are at rest, without a turn of the
 * event loop, which costs six times as much. Only now and then a real turn is taken, so that signals and input are heard.
 * To be called from a promise's own code only, such as after an `await`.
 */
export const hop: () => Promise<void> = makeHop()

interface Port {
  onmessage: (() => void) | null
  postMessage(message: number): void
}

interface Runtime {
  readonly process?: {
    readonly nextTick: (callback: () => void) => void
    readonly versions?: Readonly<Record<string, string | undefined>>
  }
  readonly setImmediate?: (callback: () => void) => unknown
  readonly MessageChannel?: new () => { readonly port1: Port; readonly port2: Port }
}

function makeHop(): () => Promise<void> {
  const { process, setImmediate: immediate, MessageChannel: Channel } = globalThis as unknown as Runtime
  if (immediate !== undefined) {
    const turn = (): Promise<void> => new Promise((resolve) => immediate(resolve))
    // Others that have the name order it differently against promises.
    const isNode = process?.versions?.node !== undefined && !process.versions.bun && !process.versions.deno
    if (!isNode) return turn
    const tick = process.nextTick.bind(process)
    let hops = 0
    return () => (++hops % TICKS_PER_TURN === 0 ? turn() : new Promise((resolve) => tick(resolve)))
  }
  if (Channel === undefined) throw new Error('the world needs setImmediate or MessageChannel')
  const waiting: (() => void)[] = []
  const { port1, port2 } = new Channel()
  port1.onmessage = () => waiting.shift()?.()
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      port2.postMessage(0)
    })
}
