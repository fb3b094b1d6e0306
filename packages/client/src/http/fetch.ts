import type { Dispatcher } from './fresh-connections.js'

/** The part of `fetch` that is used. It is passed in, so that it can be the runtime's own or a wrapped one. */
export type Fetch = (
  url: string,
  init: {
    readonly method: string
    readonly headers: Record<string, string>
    readonly body?: string
    readonly redirect: 'manual'
    readonly signal: AbortSignal
    /** In Node: the connections to use. Other runtimes ignore it. */
    readonly dispatcher?: Dispatcher
  },
) => Promise<FetchAnswer>

export interface FetchAnswer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  text(): Promise<string>
  arrayBuffer(): Promise<ArrayBuffer>
}
