import { compare, type System, workloads } from '../harness/comparison.js'
import { etcdSystems } from '../systems/engines/etcd.js'
import { postgresSystems } from '../systems/engines/postgres.js'
import { redisSystems } from '../systems/engines/redis.js'

/** For each engine: ours, and the usual way of its npm packages, on one server. */
const ENGINES: Readonly<Record<string, () => Promise<readonly System[]>>> = {
  etcd: etcdSystems,
  postgres: postgresSystems,
  redis: redisSystems,
}

/** 64 tasks on names of their own and 64 on one name, on engines that are not ours, beside the usual npm way. */
export async function engines(options: { rounds: number; seconds: number }): Promise<void> {
  for (const [engine, start] of Object.entries(ENGINES)) {
    const systems = await start()
    try {
      await compare(systems, workloads(engine), options)
    } finally {
      for (const system of systems) await system.stop()
    }
  }
}
