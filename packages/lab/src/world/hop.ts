/**
 * A real turn of the event loop, in which every promise that can go on goes on. The only thing that the world takes from
 * the machine that it runs on; its outcome does not depend on how long it takes.
 */
export const hop: () => Promise<void> = makeHop()

interface Port {
  onmessage: (() => void) | null
  postMessage(message: number): void
}

function makeHop(): () => Promise<void> {
  const { setImmediate: immediate, MessageChannel: Channel } = globalThis as unknown as {
    setImmediate?: (callback: () => void) => unknown
    MessageChannel?: new () => { readonly port1: Port; readonly port2: Port }
  }
  if (immediate !== undefined) return () => new Promise((resolve) => immediate(resolve))
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
