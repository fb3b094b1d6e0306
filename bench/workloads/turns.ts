import { mkdtempSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { endChild, startChild } from '../harness/children.js'
import { print } from '../harness/comparison.js'
import { spreadOf } from '../harness/results-file.js'

const SERVER = fileURLToPath(new URL('turns-server.mjs', import.meta.url))

/**
 * Turns per second of two processes over a WebSocket, with one write and one flush in each: the limit for hand-offs on one name,
 * which are one such turn each, and for one client, whose pairs are two.
 */
export async function turns(options: { rounds: number; seconds: number }): Promise<void> {
  const rounds: number[] = []
  for (let round = 0; round < options.rounds; round++) rounds.push(await turnsPerSecond(options.seconds))
  print({ workload: 'turns', turnsPerSecond: spreadOf(rounds) })
}

export async function turnsPerSecond(seconds: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-turns-'))
  const child = startChild(process.execPath, [SERVER, join(folder, 'file')], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const port = await new Promise<string>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the server of the turns ended with ${code}`)))
      createInterface({ input: child.stdout as Readable }).once('line', resolve)
    })
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
    await new Promise((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('error', reject)
    })
    const rate = await measured(socket, seconds)
    socket.terminate()
    return rate
  } finally {
    await endChild(child)
    rmSync(folder, { recursive: true, force: true })
  }
}

function measured(socket: WebSocket, seconds: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const message = new Uint8Array(40)
    const start = performance.now()
    let turns = 0
    socket.once('error', reject)
    socket.on('message', () => {
      turns++
      const elapsed = performance.now() - start
      if (elapsed < seconds * 1000) socket.send(message)
      else resolve(Math.round((turns / elapsed) * 1000))
    })
    socket.send(message)
  })
}
