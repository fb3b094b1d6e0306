import { etcd } from './engines/etcd.js'
import { conformance } from './suite/index.js'

conformance(etcd)
