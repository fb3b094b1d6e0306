import { describe, expect, test } from 'vitest'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAddress } from '../../src/peers/address.js'
import { encodeInstance, encodeSender, FRAME_REPLICA, FRAME_SENDER, frameHead } from '../../src/peers/framing.js'
import { type FindInstance, Instances } from '../../src/peers/instances.js'
import { frameOf, openPeer, type PeerOptions } from '../support/peers.js'
import { until } from '../support/until.js'

/** Far below the shortest election timeout. */
const QUICK_MS = 400

describe('Instances', () => {
  const HOME = 'host:1'
  const first = { node: 2, instance: 'first', address: HOME }
  const second = { node: 2, instance: 'second', address: HOME }
  /** `running`: the instance that listens at each address. */
  const setUp = (running: Record<string, { node: number; instance?: string }>) => {
    const asked: string[] = []
    const find: FindInstance = async (address) => {
      asked.push(address)
      const answer = running[address]
      if (answer === undefined) throw new Error('no member listens there')
      return answer
    }
    return { instances: new Instances(find), asked, running }
  }

  test('admits a restarted instance at once', async () => {
    const { instances, running } = setUp({ [HOME]: first })
    expect(await instances.admit(first, HOME)).toBeUndefined()
    running[HOME] = second
    expect(await instances.admit(second, HOME)).toBeUndefined()
    expect([instances.isAdmitted(first), instances.isAdmitted(second)]).toEqual([false, true])
  })

  test('rejects a second instance while the first runs, even if the first has not connected', async () => {
    for (const hasConnected of [true, false]) {
      const { instances, asked } = setUp({ [HOME]: first })
      if (hasConnected) expect(await instances.admit(first, HOME)).toBeUndefined()
      expect(await instances.admit({ ...second, address: 'copy:1' }, HOME)).toBe(HOME)
      expect(await instances.admit(second, HOME)).toBe(HOME)
      const before = asked.length
      expect(await instances.admit(first, HOME)).toBeUndefined()
      expect(asked).toHaveLength(before)
    }
  })

  test('rejects an instance that returns while its successor runs elsewhere', async () => {
    const { instances } = setUp({ 'new:1': second })
    expect(await instances.admit(first, HOME)).toBeUndefined()
    expect(await instances.admit({ ...second, address: 'new:1' }, HOME)).toBeUndefined()
    expect(await instances.admit(first, HOME)).toBe('new:1')
  })

  test('admits an instance if no other instance of its node answers', async () => {
    for (const answer of [{ node: 3, instance: 'other' }, { node: 2 }, undefined]) {
      const { instances } = setUp(answer === undefined ? {} : { [HOME]: answer })
      expect(await instances.admit(first, HOME)).toBeUndefined()
      expect(await instances.admit(second, HOME)).toBeUndefined()
    }
  })

  test('admits one of two instances that connect at the same time', async () => {
    const { instances } = setUp({ [HOME]: first })
    const outcomes = await Promise.all([instances.admit(second, HOME), instances.admit(first, HOME)])
    expect(outcomes).toEqual([HOME, undefined])
    instances.keepOnly(new Set())
    expect(instances.isAdmitted(first)).toBe(false)
  })
})

describe('TcpTransport with instances', () => {
  const member = (node: number, options: PeerOptions = {}) => openPeer(node, { ...options, reportsStatus: true })

  test('rejects a second instance and its frames, and keeps accepting the first', async () => {
    const [one, two] = [await member(1), await member(2)]
    one.peers.setPeers(new Map([[2, two.address]]))
    two.peers.setPeers(new Map([[1, one.address]]))
    const copy = await member(2, { address: two.address })
    copy.peers.setPeers(new Map([[1, one.address]]))
    copy.send(1, 'control', 'a second vote')
    await until(() => copy.refusals.length > 0, 'the refusal')
    expect(copy.refusals[0]).toBe(two.address)
    two.send(1, 'control', 'the vote')
    await until(() => one.received.length > 0, 'the vote')
    copy.send(1, 'bulk', 'once more')
    await until(() => copy.refusals.length > 1, 'another refusal')
    two.send(1, 'bulk', 'entries')
    await until(() => one.received.length > 1, 'the entries')
    expect([one.received, two.refusals]).toEqual([['the vote', 'entries'], []])
  })

  test('accepts a restarted instance at once, and closes the connection of the old one', async () => {
    const [one, two] = [await member(1), await member(2)]
    one.peers.setPeers(new Map([[2, two.address]]))
    two.peers.setPeers(new Map([[1, one.address]]))
    two.send(1, 'control', 'before')
    await until(() => one.received.length === 1, 'the first')
    // As after a power failure: the connection of the old process is still open on this side.
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
    const listen = parseAddress(two.address)
    await two.peers.close()
    const again = await member(2, { listen })
    again.peers.setPeers(new Map([[1, one.address]]))
    const start = performance.now()
    again.send(1, 'control', 'after')
    await until(() => one.received.length === 2, 'the restarted one')
    expect(performance.now() - start).toBeLessThan(QUICK_MS)
    await ended
    expect([one.received, again.refusals]).toEqual([['before', 'after'], []])
  })

  test('accepts an older version, which sends no instance', async () => {
    const [one, two] = [await member(1), await member(2)]
    one.peers.setPeers(new Map([[2, two.address]]))
    const { port } = parseAddress(one.address)
    const old = connect({ host: '127.0.0.1', port })
    const content = encodeSender({ node: 2, address: two.address })
    old.write(frameHead(FRAME_SENDER, content.length))
    old.write(content)
    const frame = frameOf(2, 'old')
    old.write(frameHead(FRAME_REPLICA, frame.length))
    old.write(frame)
    await until(() => one.received.length === 1, 'the frame')
    old.destroy()
    // An older version treats the instance as an unusable address.
    expect(() => parseAddress(encodeInstance(2, two.peers.instance).toString('utf8', 8))).toThrow(/HOST:PORT/)
  })
})
