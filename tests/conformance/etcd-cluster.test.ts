import { etcdCluster } from './engines/etcd.js'
import { conformance } from './suite/index.js'

conformance(etcdCluster)
