export { EngineHost, type HostOptions } from './engine-host.js'
export type { OwnedPort, Port } from './thread-protocol.js'
export { RemoteEngine, type RemoteEngineOptions } from './remote-engine.js'
