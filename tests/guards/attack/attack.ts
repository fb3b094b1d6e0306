import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { LapsingLock } from '../../../packages/fence/test/support/lapsing-lock.js'

const WORKERS = 16
const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))

export interface AttackOptions {
  readonly store: 'redis' | 'fs' | 'register'
  readonly guarded: boolean
  /** URL of the server, or path of the file. */
  readonly target: string
  readonly units: number
  readonly seed: number
  /** How long a holder keeps the lock at most. Pauses of up to 2.5 times that happen. */
  readonly leaseMs: number
  /** Default 16. */
  readonly processes?: number
}

export interface AttackResult {
  readonly acknowledged: number
  readonly refused: number
  readonly unknown: number
}

interface Message {
  readonly kind: 'next' | 'over'
  readonly outcome?: 'acknowledged' | 'refused' | 'unknown' | 'failed'
  readonly why?: string
}

/** Many processes at one resource, under a lock that passes on while its holders pause. */
export async function attack(options: AttackOptions): Promise<AttackResult> {
  const { store, guarded, target, units, seed, leaseMs, processes = WORKERS } = options
  const lock = new LapsingLock(leaseMs)
  const count = { acknowledged: 0, refused: 0, unknown: 0 }
  let begun = 0

  const serve = (child: ChildProcess): Promise<void> =>
    new Promise((resolve, reject) => {
      let release = () => {}
      const grant = async () => {
        if (begun++ >= units) return void child.send({ token: null })
        if (store === 'register') return void child.send({ token: '0' })
        const granted = await lock.acquire()
        release = granted.release
        child.send({ token: granted.token.toString() })
      }
      child.on('message', ({ kind, outcome, why }: Message) => {
        if (kind === 'next') return void grant()
        release()
        if (outcome === 'failed') reject(new Error(`a unit failed: ${why}`))
        else if (outcome !== undefined) count[outcome]++
      })
      child.once('error', reject)
      child.once('exit', (code) => {
        release()
        if (code === 0) resolve()
        else reject(new Error(`a worker ended with ${code}`))
      })
    })

  const children = Array.from({ length: processes }, (_, i) =>
    fork(WORKER, [JSON.stringify({ store, guarded, target, seed: seed + i, leaseMs })]),
  )
  try {
    await Promise.all(children.map(serve))
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
  return count
}
