import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UnavailableError } from '@leasehold/core'

const BIN = fileURLToPath(new URL('./bin.js', import.meta.url))

/** Starts a durable service in a child process, on a free port and in a temporary folder. `stop` ends and deletes both. */
export async function startService(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-'))
  const args = ['serve', '--data', folder, '--listen', '127.0.0.1:0', '--json', '--log-level', 'error']
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LEASEHOLD_')))
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ['ignore', 'pipe', 'inherit'], env })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await closed
    rmSync(folder, { recursive: true, force: true })
  }
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve((JSON.parse(line) as { url: string }).url))
    child.once('error', reject)
    void closed.then(() => reject(new UnavailableError('the service did not start')))
  })
  try {
    return { url: await ready, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
