import { existsSync, writeSync } from 'node:fs'
import { StaleTokenError } from '@leasehold/core'
import { createLocks, type Hold, type Locks } from 'leasehold'
import { openStore, type Store } from './store.js'
import type { Report, WorkerTask } from './model.js'

/*
 * The program of a worker process. It adds an amount to the record: acquire, read, compute, write. It is as careful as a
 * program without a guard can be: right before its write, it checks that its lease is valid.
 */

const STDOUT = 1
const GATE_LIMIT_MS = 18_000
const GATE_POLL_MS = 10
const WAIT = '15s'
const WORK_MS = 150

/** Writes a report synchronously, because this process may be stopped right after it. */
function report(what: Report): void {
  writeSync(STDOUT, `${JSON.stringify(what)}\n`)
}

/** Blocks between the check of the lease and the write, like a long pause. The demo stops this process here. */
function pauseAt(gate: string | undefined): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  const end = performance.now() + GATE_LIMIT_MS
  while (gate !== undefined && !existsSync(gate) && performance.now() < end) Atomics.wait(sleeper, 0, 0, GATE_POLL_MS)
}

async function unit(hold: Hold, store: Store, task: WorkerTask, gate: string | undefined): Promise<void> {
  report({ kind: 'held', token: String(hold.token) })
  const value = await store.read(hold)
  report({ kind: 'read', value })
  await new Promise((done) => setTimeout(done, WORK_MS))
  const total = value + task.amount
  await store.write(hold, total, () => {
    report({ kind: 'sending', value: total })
    pauseAt(gate)
  })
  report({ kind: 'wrote', value: total })
}

/** Opens the session with a lock of its own, so that the worker's next lock gets the next token, and waits for `begin`. */
async function waitFor(locks: Locks, task: WorkerTask, begin: string): Promise<void> {
  await locks.request(`warm-up/${task.actor}`, { ttl: task.ttlMs, wait: WAIT }, () => report({ kind: 'ready' }))
  const end = performance.now() + GATE_LIMIT_MS
  while (!existsSync(begin) && performance.now() < end) await new Promise((done) => setTimeout(done, GATE_POLL_MS))
}

async function work(locks: Locks, store: Store, task: WorkerTask): Promise<void> {
  const once = async (gate: string | undefined) => {
    const hold = await locks.acquire(task.lock, { ttl: task.ttlMs, wait: WAIT })
    try {
      await unit(hold, store, task, gate)
    } finally {
      await hold.release()
    }
  }
  if (task.begin !== undefined) await waitFor(locks, task, task.begin)
  try {
    await once(task.gate)
  } catch (error) {
    if (!(error instanceof StaleTokenError)) throw error
    report({ kind: 'refused', error: error.name, message: error.message, mark: error.mark?.toString() ?? null })
    await once(undefined)
  }
  report({ kind: 'released' })
}

async function main(): Promise<void> {
  const task = JSON.parse(process.argv[2] as string) as WorkerTask
  const store = await openStore(task.store, task.guarded)
  const locks = createLocks(task.url, { clientName: `worker ${task.actor}` })
  try {
    await work(locks, store, task)
  } catch (error) {
    const { name, message } = error as Error
    report({ kind: 'failed', error: name, message })
  } finally {
    await locks.close()
    await store.close()
  }
}

void main()
