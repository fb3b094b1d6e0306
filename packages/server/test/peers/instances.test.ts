import { afterEach, describe, expect, test } from 'vitest'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAddress } from '../../src/peers/address.js'
import { encodeInstance, encodeSender, FRAME_REPLICA, FRAME_SENDER, frameHead } from '../../src/peers/framing.js'
import { type FindInstance, Instances } from '../../src/peers/instances.js'
import { encodeBootstrapStatus } from '../../src/peers/bootstrap-status.js'
import { TcpTransport } from '../../src/peers/transport.js'

const SOON_MS = 10_000
/** Of a restart: far below the shortest election timeout. */
const QUICK_MS = 400

async function until(isTrue: () => boolean, what: string): Promise<void> {
  for (const end = performance.now() + SOON_MS; !isTrue(); await sleep(5)) {
    if (performance.now() > end) throw new Error(`not within ${SOON_MS} ms: ${what}`)
  }
}

describe('which instance of a node is listened to', () => {
  const HOME = 'host:1'
  const first = { node: 2, instance: 'first', address: HOME }
  const second = { node: 2, instance: 'second', address: HOME }
  /** What listens where. */
  const asking = (living: Record<string, { node: number; instance?: string }>) => {
    const asked: string[] = []
    const ask: FindInstance = async (address) => {
      asked.push(address)
      const answer = living[address]
      if (answer === undefined) throw new Error('nothing listens there')
      return answer
    }
    return { instances: new Instances(ask), asked, living }
  }

  test('is a restarted one, at once', async () => {
    const { instances, living } = asking({ [HOME]: first })
    expect(await instances.admit(first, HOME)).toBeUndefined()
    living[HOME] = second
    expect(await instances.admit(second, HOME)).toBeUndefined()
    expect([instances.isAdmitted(first), instances.isAdmitted(second)]).toEqual([false, true])
  })

  test('is not a second one while the first lives, whether the first has spoken or not', async () => {
    for (const hasSpoken of [true, false]) {
      const { instances, asked } = asking({ [HOME]: first })
      if (hasSpoken) expect(await instances.admit(first, HOME)).toBeUndefined()
      expect(await instances.admit({ ...second, address: 'copy:1' }, HOME)).toBe(HOME)
      expect(await instances.admit(second, HOME)).toBe(HOME)
      const before = asked.length
      expect(await instances.admit(first, HOME)).toBeUndefined()
      expect(asked).toHaveLength(before)
    }
  })

  test('is not one that comes back while its successor lives elsewhere', async () => {
    const { instances } = asking({ 'new:1': second })
    expect(await instances.admit(first, HOME)).toBeUndefined()
    expect(await instances.admit({ ...second, address: 'new:1' }, HOME)).toBeUndefined()
    expect(await instances.admit(first, HOME)).toBe('new:1')
  })

  test('is any where no other one answers: another node, an older version, or nothing', async () => {
    for (const answer of [{ node: 3, instance: 'other' }, { node: 2 }, undefined]) {
      const { instances } = asking(answer === undefined ? {} : { [HOME]: answer })
      expect(await instances.admit(first, HOME)).toBeUndefined()
      expect(await instances.admit(second, HOME)).toBeUndefined()
    }
  })

  test('is one of two that come at once', async () => {
    const { instances } = asking({ [HOME]: first })
    const outcomes = await Promise.all([instances.admit(second, HOME), instances.admit(first, HOME)])
    expect(outcomes).toEqual([HOME, undefined])
    instances.keepOnly(new Set())
    expect(instances.isAdmitted(first)).toBe(false)
  })
})

describe('a member of a cluster', () => {
  const all: TcpTransport[] = []
  afterEach(async () => {
    await Promise.all(all.splice(0).map((peers) => peers.close()))
  })

  async function member(node: number, place?: { host: string; port: number }, address?: string) {
    const peers = await TcpTransport.listen(place ?? { host: '127.0.0.1', port: 0 })
    all.push(peers)
    const own = `127.0.0.1:${peers.port}`
    peers.introduce({ node, address: address ?? own })
    const received: string[] = []
    const refusals: string[] = []
    peers.receive((_from, frame) => received.push(Buffer.from(frame).toString()))
    peers.onRefused((other) => refusals.push(other))
    const { instance } = peers
    peers.onQuestion(async () => encodeBootstrapStatus({ name: `n${node}`, node, list: '', instance }))
    return { node, peers, address: own, received, refusals }
  }
  const frame = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))

  test('takes nothing from a second instance, refuses it, and keeps listening to the first', async () => {
    const [one, two] = [await member(1), await member(2)]
    one.peers.setPeers(new Map([[2, two.address]]))
    two.peers.setPeers(new Map([[1, one.address]]))
    const copy = await member(2, undefined, two.address)
    copy.peers.setPeers(new Map([[1, one.address]]))
    copy.peers.send(1, 'control', frame('a second vote'))
    await until(() => copy.refusals.length > 0, 'the refusal')
    expect(copy.refusals[0]).toBe(two.address)
    two.peers.send(1, 'control', frame('the vote'))
    await until(() => one.received.length > 0, 'the vote')
    copy.peers.send(1, 'bulk', frame('once more'))
    await until(() => copy.refusals.length > 1, 'another refusal')
    two.peers.send(1, 'bulk', frame('entries'))
    await until(() => one.received.length > 1, 'the entries')
    expect([one.received, two.refusals]).toEqual([['the vote', 'entries'], []])
  })

  test('listens to a restarted one at once, and not to what the old connection still says', async () => {
    const [one, two] = [await member(1), await member(2)]
    one.peers.setPeers(new Map([[2, two.address]]))
    two.peers.setPeers(new Map([[1, one.address]]))
    two.peers.send(1, 'control', frame('before'))
    await until(() => one.received.length === 1, 'the first')
    // As after a power cut: the connection of the old process is still open here.
    const { port } = parseAddress(one.address)
    const old = connect({ host: '127.0.0.1', port })
    const sender = encodeSender({ node: 2, address: two.address })
    const instance = encodeInstance(2, two.peers.instance)
    for (const content of [sender, instance]) {
      old.write(frameHead(FRAME_SENDER, content.length))
      old.write(content)
    }
    const ended = new Promise((done) => old.once('close', done))
    old.on('error', () => {}).resume()
    await sleep(50)
    const place = parseAddress(two.address)
    await two.peers.close()
    const again = await member(2, place)
    again.peers.setPeers(new Map([[1, one.address]]))
    const begun = performance.now()
    again.peers.send(1, 'control', frame('after'))
    await until(() => one.received.length === 2, 'the restarted one')
    expect(performance.now() - begun).toBeLessThan(QUICK_MS)
    await ended
    expect([one.received, again.refusals]).toEqual([['before', 'after'], []])
  })

  test('listens to an older version, which does not say which instance it is', async () => {
    const [one, two] = [await member(1), await member(2)]
    one.peers.setPeers(new Map([[2, two.address]]))
    const { port } = parseAddress(one.address)
    const old = connect({ host: '127.0.0.1', port })
    const content = encodeSender({ node: 2, address: two.address })
    old.write(frameHead(FRAME_SENDER, content.length))
    old.write(content)
    old.write(frameHead(FRAME_REPLICA, 3))
    old.write('old')
    await until(() => one.received.length === 1, 'the frame')
    old.destroy()
    // And an older version takes the number of an instance for an address that it cannot use.
    expect(() => parseAddress(encodeInstance(2, two.peers.instance).toString('utf8', 8))).toThrow(/HOST:PORT/)
  })
})
