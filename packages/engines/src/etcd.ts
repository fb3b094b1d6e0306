export { etcdEngine, type EtcdEngineOptions } from './etcd/engine.js'
