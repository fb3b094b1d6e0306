import * as nodeFs from 'node:fs/promises'
import type { FileSystem } from '../../src/fs/folder.js'

export class Crash extends Error {}

/** A file system whose process dies at its n-th call, before or after that call has taken effect. All later calls fail. */
export function crashingAt(n: number, when: 'before' | 'after'): FileSystem & { readonly calls: number } {
  let calls = 0
  const step = async <T>(call: () => Promise<T>): Promise<T> => {
    calls++
    if (calls > n || (calls === n && when === 'before')) throw new Crash(`call ${calls}`)
    const result = await call()
    if (calls >= n) {
      await (result as { close?: () => Promise<void> } | undefined)?.close?.()
      throw new Crash(`after call ${calls}`)
    }
    return result
  }
  const watched = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, property) {
        const value: unknown = Reflect.get(object, property, object)
        if (typeof value !== 'function') return value
        // A dead process closes its files.
        if (property === 'close') return () => Reflect.apply(value, object, []) as unknown
        return (...args: unknown[]) =>
          step(async () => {
            const answer: unknown = await Reflect.apply(value, object, args)
            return property === 'open' ? watched(answer as object) : answer
          })
      },
    })
  const fs = watched({ ...nodeFs }) as unknown as FileSystem
  return Object.defineProperty(fs, 'calls', { get: () => calls }) as FileSystem & { readonly calls: number }
}
