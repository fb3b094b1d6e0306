import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLocks } from 'leasehold'
import type { Subject } from './measure.js'

const BIN = fileURLToPath(new URL('../packages/leasehold/bin/leasehold.js', import.meta.url))
const TTL = '30s'

/** A real service in a process of its own, with all its flushes. */
export async function startLeasehold(folder?: string) {
  const data = folder ?? mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const child = spawn(
    process.execPath,
    [BIN, 'serve', '--data', data, '--listen', '127.0.0.1:0', '--json', '--log-level', 'error'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the service ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => resolve((JSON.parse(line) as { url: string }).url))
  })
  const locks = createLocks(url, { ttl: TTL, wait: Number.POSITIVE_INFINITY, clientName: 'bench' })
  await locks.connect()
  const pair = async (name: string) => {
    const start = performance.now()
    const hold = await locks.acquire(name)
    const granted = performance.now()
    await hold.release()
    return { start, granted, end: performance.now() }
  }
  const distinct: Subject = {
    system: 'leasehold',
    async pair(task) {
      const { start, end } = await pair(`bench/${task}`)
      return end - start
    },
  }
  const oneName: Subject = {
    system: 'leasehold',
    async pair() {
      const { start, granted } = await pair('bench/one')
      return granted - start
    },
  }
  const stop = async () => {
    await locks.close()
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await gone
    if (folder === undefined) rmSync(data, { recursive: true, force: true })
  }
  return { distinct, oneName, stop }
}
