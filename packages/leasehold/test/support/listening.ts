import { createServer } from 'node:net'

/** A port of this machine that nobody listens on now: members of a cluster must know theirs before they begin. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return port
}
