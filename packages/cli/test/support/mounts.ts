import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { BIN } from './cli.js'

/** Whether this machine lets the test mount file systems, in a mount namespace that only its processes see. */
export function canMount(...script: string[]): boolean {
  if (process.platform !== 'linux') return false
  return spawnSync('unshare', ['-m', 'sh', '-ec', script.join('\n')], { stdio: 'ignore' }).status === 0
}

export interface Mounted {
  readonly url: string
  readonly stderr: () => string
  readonly finished: Promise<number | null>
  /** Runs a command in the mount namespace of the service. */
  run(...command: string[]): void
  kill(signal: NodeJS.Signals): void
}

/** A service in a mount namespace of its own, after `script` has mounted there what it is about. Resolves when it is ready. */
export async function serveMounted(script: string, data: string): Promise<Mounted> {
  const serve = `exec '${process.execPath}' '${BIN}' serve --data '${data}' --listen 127.0.0.1:0 --json --log-level warn`
  const child = spawn('unshare', ['-m', 'sh', '-ec', `${script}\n${serve}`], { stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const finished = new Promise<number | null>((resolve) => child.once('close', resolve))
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (stdout.includes('\n')) resolve()
    })
    void finished.then((code) => reject(new Error(`ended with ${code}: ${stderr}`)))
  })
  return {
    url: (JSON.parse(stdout) as { url: string }).url,
    stderr: () => stderr,
    finished,
    run: (...command) => {
      execFileSync('nsenter', ['-t', String(child.pid), '-m', ...command], { stdio: 'ignore' })
    },
    kill: (signal) => child.kill(signal),
  }
}
