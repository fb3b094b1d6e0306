import { type ChildProcess, execFileSync, spawn, type SpawnOptions } from 'node:child_process'

/** Servers that this process has started and that have not ended. */
const running = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

/** Starts a server that ends with this process at the latest. A program that cannot be started rejects `ended`. */
export function startChild(file: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const child = spawn(file, args, options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  child.once('error', () => running.delete(child))
  return child
}

/** Ends it gently, and after `limitMs` at once. */
export async function endChild(
  child: ChildProcess,
  signal: NodeJS.Signals = 'SIGTERM',
  limitMs = 10_000,
): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
  await gone
  clearTimeout(timer)
}

/** The first line that a program prints about itself. */
export function firstLine(file: string, args: readonly string[]): string {
  return (
    execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
      .trim()
      .split('\n')[0] ?? ''
  )
}
