import { AsyncLocalStorage } from 'node:async_hooks'

const gates = new AsyncLocalStorage<() => Promise<void>>()

/**
 * A point at which the test kit may stop a process. Outside of the test kit it does nothing.
 * Call it between the steps of your resource, or wrap its driver with {@link pausing}.
 */
export async function pausePoint(): Promise<void> {
  await gates.getStore()?.()
}

/**
 * Wraps a driver, pool or client with a pause point before each call that returns a promise.
 * @example
 * const pool = pausing(new Pool())
 */
export function pausing<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, property) {
      const value: unknown = Reflect.get(object, property, object)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const call = () => Reflect.apply(value, object, args) as unknown
        if (gates.getStore() === undefined || !PAUSING.has(String(property))) return call()
        return pausePoint().then(async () => wrapped(await call()))
      }
    },
  })
}

/** Methods of drivers that return a promise. */
const PAUSING = new Set(
  'query execute connect begin commit get set eval call put send open link unlink readdir readFile writeFile rename'.split(
    ' ',
  ),
)

/** Wraps the client that `connect` returns. */
function wrapped(answer: unknown): unknown {
  const isClient = typeof answer === 'object' && answer !== null && 'query' in answer && 'release' in answer
  return isClient ? pausing(answer) : answer
}

/** An operation that stops at its n-th pause point, counted from 1, until `resume`. */
export class Stopped<T> {
  readonly result: Promise<T>
  /** Resolves when the operation has reached its n-th pause point. */
  readonly reached: Promise<void>
  resume: () => void = () => {}

  constructor(n: number, operation: () => Promise<T>) {
    const resumed = new Promise<void>((resolve) => {
      this.resume = resolve
    })
    let arrive: () => void = () => {}
    this.reached = new Promise((resolve) => {
      arrive = resolve
    })
    let count = 0
    this.result = gates.run(async () => {
      if (++count !== n) return
      arrive()
      await resumed
    }, operation)
  }
}
