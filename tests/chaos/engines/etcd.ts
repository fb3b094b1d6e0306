import { setTimeout as sleep } from 'node:timers/promises'
import { type EtcdMember, startEtcdCluster } from '../../services/etcd.js'
import { Proxy } from '../../services/proxy.js'
import type { EngineWorld } from '../engine-run.js'
import type { SeededRandom } from '../random.js'

const MEMBERS = 3

/** An etcd of three members with all its flushes, whose members die and stand still, and whose lines break. */
export async function etcdWorld(): Promise<EngineWorld> {
  const cluster = await startEtcdCluster(MEMBERS)
  const { members } = cluster
  const proxies = await Promise.all(members.map(({ port }) => Proxy.start(port)))
  const restarted = async (member: EtcdMember, random: SeededRandom): Promise<void> => {
    await member.signal('SIGKILL')
    await sleep(random.between(200, 3_000))
    member.start()
    await cluster.leader()
  }
  const stopped = async (member: EtcdMember, random: SeededRandom): Promise<void> => {
    await member.signal('SIGSTOP')
    await sleep(random.between(500, 4_500))
    await member.signal('SIGCONT')
    await cluster.leader()
  }
  const broken = (how: 'mute' | 'shut', which: (random: SeededRandom) => readonly Proxy[]) => {
    return async (random: SeededRandom): Promise<void> => {
      const chosen = which(random)
      for (const proxy of chosen) proxy[how]()
      await sleep(random.between(200, 4_500))
      for (const proxy of chosen) proxy.open()
    }
  }
  return {
    url: `etcd://${proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    faults: {
      'member killed': (random) => restarted(random.pick(members), random),
      'leader killed': async (random) => restarted(await cluster.leader(), random),
      'all killed': async (random) => {
        await Promise.all(members.map((member) => member.signal('SIGKILL')))
        await sleep(random.between(200, 1_000))
        for (const member of members) member.start()
        await cluster.leader()
      },
      'member stands still': (random) => stopped(random.pick(members), random),
      'leader stands still': async (random) => stopped(await cluster.leader(), random),
      'answers lost': broken('mute', () => proxies),
      'a line answers no more': broken('mute', (random) => [random.pick(proxies)]),
      'lines shut': broken('shut', () => proxies),
      'a line shut': broken('shut', (random) => [random.pick(proxies)]),
      'history compacted': () => cluster.compact(),
    },
    async stop() {
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()))
      await cluster.stop()
    },
  }
}
