export { etcdEngine, type EtcdEngineOptions } from './etcd/engine.js'
export { type RaisedEpoch, raiseEpoch } from './etcd/raise-epoch.js'
