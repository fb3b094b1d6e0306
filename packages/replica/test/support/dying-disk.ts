import { createRequire, syncBuiltinESMExports } from 'node:module'

/** Everything that changes a disk. */
const CHANGES = [
  'openSync',
  'writeSync',
  'writevSync',
  'writeFileSync',
  'fsyncSync',
  'fdatasyncSync',
  'renameSync',
  'unlinkSync',
  'linkSync',
  'rmSync',
  'mkdirSync',
  'open',
  'write',
  'writev',
  'fdatasync',
  'unlink',
] as const

type Changing = (...args: unknown[]) => unknown
const machine = createRequire(import.meta.url)('node:fs') as Record<string, Changing>

/**
 * Lets `work` make `allowed` changes of the disk; every later one fails, as if the process had been killed there: nothing
 * can be cleaned up either. Returns whether it completed. Throws nothing.
 */
export async function dyingAfter(allowed: number, work: () => Promise<unknown>): Promise<boolean> {
  const real = new Map(CHANGES.map((name) => [name, machine[name] as Changing]))
  let left = allowed
  for (const [name, call] of real) {
    machine[name] = (...args) => {
      const reads = name.startsWith('open') && args[1] === 'r'
      if (reads || left-- > 0) return call(...args)
      const error = Object.assign(new Error(`${name}: the disk has gone`), { code: 'EIO' })
      const callback = args.at(-1)
      if (name.endsWith('Sync') || typeof callback !== 'function') throw error
      setImmediate(() => (callback as Changing)(error))
      return undefined
    }
  }
  syncBuiltinESMExports()
  try {
    await work()
    return true
  } catch {
    return false
  } finally {
    for (const [name, call] of real) machine[name] = call
    syncBuiltinESMExports()
  }
}
