export { StreamHub } from './stream-hub.js'
export {
  lockViews,
  STREAM_LIMITS,
  type StreamHubOptions,
  type StreamLimits,
  type StreamPeer,
  type StreamViews,
} from './stream-options.js'
export { ServiceStream } from './service-stream.js'
