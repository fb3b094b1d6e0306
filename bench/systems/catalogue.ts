import { readFileSync } from 'node:fs'
import { findExecutable } from '../../tests/services/process.js'
import { findPostgres } from '../../tests/services/postgres.js'
import { firstLine } from '../harness/children.js'
import { startEtcdCluster } from './etcd.js'
import { startRedis } from './redis.js'
import { startLeasehold, startLeaseholdCluster } from './leasehold.js'
import type { Peer } from './peer.js'
import { startPostgresLeases } from './postgres-leases.js'
import { startRedlock } from './redlock.js'
import { startZooKeeper, ZOOKEEPER_JAR, zookeeperProblem } from './zookeeper.js'

function needs(program: string, debian: string): () => string | undefined {
  return () => (findExecutable(program) === undefined ? `${program} is not installed (Debian: ${debian})` : undefined)
}

function npm(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
  return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`
}

const redisVersion = (): string =>
  `${/v=([\d.]+)/.exec(firstLine('redis-server', ['--version']))?.[1]}, ${npm('ioredis')}`
const etcdVersion = (): string => `${/[\d.]+/.exec(firstLine('etcd', ['--version']))?.[0]}, ${npm('etcd3')}`
const ours = (): string => `Node ${process.version}`
const nothing = (): undefined => undefined

const ETCD_LACKS =
  'times of leases do not survive an election; the order of waiters is kept by clients, each with a watch of its own; no durable mark at the resource'

export const LEASEHOLD: Peer = {
  name: 'leasehold, one member',
  how: '`leasehold serve` with its defaults; the client of this repository, one connection',
  lacks: 'survives a crash, not the loss of its machine',
  missing: nothing,
  version: ours,
  start: () => startLeasehold(),
}

export const LEASEHOLD_CLUSTER: Peer = {
  name: 'leasehold, three members',
  how: 'three processes with their defaults on one machine; the client of this repository, one connection',
  lacks: 'nothing of what its page promises; on one machine the three share processors and disk',
  missing: nothing,
  version: ours,
  start: () => startLeaseholdCluster(3),
}

/** Everything that is measured beside ours, cheapest promise first. */
export const PEERS: readonly Peer[] = [
  {
    name: 'Redis everysec',
    how: '`appendfsync everysec`, `save ""`; SET NX PX, release by a script that compares; ioredis with automatic pipelining, one connection; waiting is asking again every 10 ms',
    lacks: 'a crash forgets up to a second of grants; no queue; no token that grows; a failover forgets grants',
    missing: needs('redis-server', 'redis-server'),
    version: redisVersion,
    start: () => startRedis('everysec'),
  },
  {
    name: 'Redis always',
    how: 'the same with `appendfsync always`: each answer after a flush',
    lacks: 'no queue; no token that grows; a failover forgets grants',
    missing: needs('redis-server', 'redis-server'),
    version: redisVersion,
    start: () => startRedis('always'),
  },
  {
    name: 'redlock over five Redis',
    how: 'redlock 5 (beta), five servers with `appendfsync always`, ioredis with automatic pipelining; its own retries, every 10 ms with 10 ms of jitter',
    lacks: 'no queue; no token; rests on clocks of five machines and on pauses that are short',
    missing: needs('redis-server', 'redis-server'),
    version: () => `${npm('redlock')}, Redis ${redisVersion()}`,
    start: startRedlock,
  },
  {
    name: 'PostgreSQL row lease',
    how: 'one row per lock, taken by INSERT … ON CONFLICT … WHERE it has expired, with a counter as token; `synchronous_commit on`, prepared statements, a pool of 32 connections; waiting is asking again every 10 ms',
    lacks: 'no queue; asynchronous replicas can forget grants at a failover',
    missing: () => (findPostgres() === undefined ? 'PostgreSQL is not installed (Debian: postgresql)' : undefined),
    version: () => `${/[\d.]+/.exec(firstLine(`${findPostgres()}/postgres`, ['--version']))?.[0]}, ${npm('pg')}`,
    start: startPostgresLeases,
  },
  {
    name: 'ZooKeeper',
    how: 'one server, `forceSync` on; ephemeral sequential nodes, each waiter watches the one before it (the recipe of its documentation); node-zookeeper-client, one connection',
    lacks: 'one server, so no quorum; the token must be made of the transaction number by hand',
    missing: zookeeperProblem,
    version: () => `${/zookeeper-([\d.]+)\.jar/.exec(ZOOKEEPER_JAR)?.[1]}, ${npm('node-zookeeper-client')}`,
    start: startZooKeeper,
  },
  {
    name: 'etcd, one member',
    how: 'its defaults; one transaction to take and one deletion to release under one shared lease, waiters in a queue that each watch the one before them: cheaper than its own lock service; etcd3, one connection',
    lacks: ETCD_LACKS,
    missing: needs('etcd', 'etcd-server'),
    version: etcdVersion,
    start: () => startEtcdCluster(1),
  },
  {
    name: 'etcd, three members',
    how: 'the same on three members on one machine',
    lacks: ETCD_LACKS,
    missing: needs('etcd', 'etcd-server'),
    version: etcdVersion,
    start: () => startEtcdCluster(3),
  },
]
