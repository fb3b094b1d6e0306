import { createServer } from 'node:net'

/**
 * Below the ports that the system gives to outgoing connections and to sockets that bind any port: what is free stays free
 * while the server that it is for has not begun, or is down for a while.
 */
const PORT_LEAST = 20_000
const PORT_MOST = 32_000
/** Workers that run tests at the same time look at different ports: each at those with its own rest of this division. */
const LANES = 8
/** Far more than are ever taken. */
const LOOKS_MAX = 1_000

const lane = Number(process.env.VITEST_POOL_ID ?? process.pid) % LANES
const given = new Set<number>()

/** A port of 127.0.0.1 without a listener, reserved for this caller. */
export async function freePort(): Promise<number> {
  for (let look = 0; look < LOOKS_MAX; look++) {
    const port = PORT_LEAST + LANES * Math.floor((Math.random() * (PORT_MOST - PORT_LEAST)) / LANES) + lane
    if (given.has(port) || !(await isFree(port))) continue
    given.add(port)
    return port
  }
  throw new Error(`no free port of this worker between ${PORT_LEAST} and ${PORT_MOST} in ${LOOKS_MAX} looks`)
}

/** So many of them, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await freePort())
  return ports
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
