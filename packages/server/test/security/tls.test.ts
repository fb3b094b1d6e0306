import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Dialer, tlsDialer } from '../../src/peers/dialer.js'
import { TcpTransport } from '../../src/peers/transport.js'
import { silent } from '../../src/observability/logger.js'
import { frameOf, textOf } from '../support/peers.js'
import { Authority } from '../support/certificates.js'
import { serve, until } from '../support/harness.js'

let authority: Authority
let otherAuthority: Authority
beforeAll(() => {
  authority = new Authority()
  otherAuthority = new Authority('another authority')
})
afterAll(() => {
  authority.remove()
  otherAuthority.remove()
})

interface Shown {
  readonly cert: string
  readonly key: string
}

function get(port: number, path: string, shown?: Shown): Promise<{ status: number; body: string }> {
  const own = shown === undefined ? {} : { cert: readFileSync(shown.cert), key: readFileSync(shown.key) }
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, ca: readFileSync(authority.ca), agent: false as const, ...own }
    const asking = request(options, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    asking.once('error', reject)
    asking.end()
  })
}

function serialAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: '127.0.0.1', port, ca: readFileSync(authority.ca) }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

describe('HTTPS', () => {
  test('serves with its certificate, under an https URL', async () => {
    const { server } = await serve({ tls: authority.issue('server') })
    expect(server.url).toMatch(/^https:/)
    expect((await get(server.port, '/healthz')).status).toBe(200)
  })

  test('requires a client certificate, and reports why a missing, foreign or expired one is rejected', async () => {
    const audit = join(authority.folder, 'audit.jsonl')
    const { server, member } = await serve({ tls: { ...authority.issue('server'), ca: authority.ca }, audit })
    const ask = (shown?: Shown) => get(server.port, '/v1/locks', shown)
    expect((await ask(authority.issue('client'))).status).toBe(200)
    for (const [shown, why] of [
      [undefined, 'certificate'],
      [otherAuthority.issue('client'), 'certificate'],
      [authority.issue('old', { expired: true }), 'EXPIRED'],
    ] as const) {
      const { status, body } = await ask(shown)
      expect([status, JSON.parse(body)]).toEqual([401, expect.objectContaining({ code: 'unauthenticated' })])
      expect(body).toContain(why)
    }
    expect(member.submitted).toEqual([])
    const lines = readFileSync(audit, 'utf8').trim().split('\n')
    expect(lines.filter((line) => line.includes('"refused"'))).toHaveLength(3)
  })

  test('loads a renewed certificate without a restart, and keeps the old one while the new one is invalid', async () => {
    const [first, second] = [authority.issue('first'), authority.issue('second')]
    const files = { cert: join(authority.folder, 'live.pem'), key: join(authority.folder, 'live.key') }
    copyFileSync(first.cert, files.cert)
    copyFileSync(first.key, files.key)
    const { server } = await serve({ tls: files })
    const before = await serialAt(server.port)
    writeFileSync(files.cert, 'nonsense')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(await serialAt(server.port)).toBe(before)
    copyFileSync(second.key, `${files.key}.new`)
    copyFileSync(second.cert, `${files.cert}.new`)
    renameSync(`${files.key}.new`, files.key)
    renameSync(`${files.cert}.new`, files.cert)
    await until(async () => (await serialAt(server.port)) !== before)
  })

  test('rejects invalid files at the start', async () => {
    const { cert } = authority.issue('one')
    const { key } = authority.issue('two')
    await expect(serve({ tls: { cert, key } })).rejects.toThrow('cannot be used for TLS')
    await expect(serve({ tls: { cert, key: `${key}.none` } })).rejects.toThrow('cannot read the TLS key')
  })
})

describe('TLS between members', () => {
  const all: TcpTransport[] = []
  afterEach(async () => {
    await Promise.all(all.splice(0).map((peers) => peers.close()))
  })

  async function member(node: number, dialer: Dialer) {
    const peers = await TcpTransport.listen({ host: '127.0.0.1', port: 0 }, { dialer })
    all.push(peers)
    const address = `127.0.0.1:${peers.port}`
    peers.introduce({ node, address })
    const received: string[] = []
    peers.receive((_from, frame) => received.push(textOf(frame)))
    return { node, peers, address, received }
  }
  const trusted = (name: string): Dialer => tlsDialer({ ...authority.issue(name), ca: authority.ca }, silent)

  test('carries frames between members with certificates of one authority', async () => {
    const [one, two] = [await member(1, trusted('n1')), await member(2, trusted('n2'))]
    one.peers.setPeers(new Map([[2, two.address]]))
    two.peers.setPeers(new Map([[1, one.address]]))
    one.peers.send(2, 'control', frameOf(1, 'hello'))
    await until(() => two.received.length === 1)
    expect(two.received).toEqual(['hello'])
  })

  test('rejects members with a foreign certificate, an expired one, or none', async () => {
    const target = await member(1, trusted('n1'))
    const foreign = tlsDialer({ ...otherAuthority.issue('n2'), ca: authority.ca }, silent)
    const expired = tlsDialer({ ...authority.issue('n3', { expired: true }), ca: authority.ca }, silent)
    for (const [node, dialer] of [foreign, expired].entries()) {
      const other = await member(2 + node, dialer)
      other.peers.setPeers(new Map([[1, target.address]]))
      other.peers.send(1, 'control', frameOf(other.node, 'let me in'))
    }
    const plain = await TcpTransport.listen({ host: '127.0.0.1', port: 0 })
    all.push(plain)
    plain.introduce({ node: 9, address: `127.0.0.1:${plain.port}` })
    plain.setPeers(new Map([[1, target.address]]))
    plain.send(1, 'control', frameOf(9, 'let me in'))
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(target.received).toEqual([])
  })
})
