import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts in these. */
const TICK_MS = 10

interface Stat {
  readonly parent: number
  readonly ownMs: number
  readonly endedChildrenMs: number
}

function statOf(pid: string): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const at = (n: number) => fields[n] as number
    return { parent: at(1), ownMs: (at(11) + at(12)) * TICK_MS, endedChildrenMs: (at(13) + at(14)) * TICK_MS }
  } catch {
    return undefined
  }
}

/** Processor time of this process, and of a server and its children, in ms; undefined where /proc is not there. */
export function cpuMs(server: number | undefined): number | undefined {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1_000
  if (server === undefined) return own
  const root = statOf(String(server))
  if (root === undefined) return undefined
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(statOf)
    .filter((stat) => stat?.parent === server)
  return own + root.ownMs + root.endedChildrenMs + children.reduce((sum, stat) => sum + (stat?.ownMs ?? 0), 0)
}
