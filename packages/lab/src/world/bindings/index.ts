export { clientPlatform } from './client-platform.js'
export { StreamConnector, serveStreams } from './connector.js'
export { replicaClock, replicaRandom } from './replica-platform.js'
