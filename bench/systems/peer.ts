import type { System } from '../harness/comparison.js'

/** A system that can be measured beside ours. */
export interface Peer {
  readonly name: string
  /** How its locks are taken here, and with which settings. */
  readonly how: string
  /** What they do not guarantee. */
  readonly lacks: string
  /** What is not there; undefined: it can be started. */
  missing(): string | undefined
  version(): string
  start(): Promise<System>
}

/** Starts them one after another. When one fails, those that run are stopped, and its error is thrown. */
export async function startAll<T extends { stop(): Promise<void> }>(
  starters: readonly (() => Promise<T>)[],
): Promise<{ readonly systems: readonly T[]; stop(): Promise<void> }> {
  const systems: T[] = []
  const stop = async (): Promise<void> => {
    const problems: unknown[] = []
    for (const system of systems.splice(0).toReversed())
      await system.stop().catch((error: unknown) => problems.push(error))
    if (problems.length > 0) throw problems[0]
  }
  try {
    for (const start of starters) systems.push(await start())
  } catch (error) {
    await stop().catch(() => {})
    throw error
  }
  return { systems: [...systems], stop }
}

/** Asks until it answers, for at most `limitMs`. */
export async function untilReady(ask: () => Promise<unknown>, limitMs: number): Promise<void> {
  const end = performance.now() + limitMs
  for (;;) {
    try {
      await ask()
      return
    } catch (error) {
      if (performance.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
