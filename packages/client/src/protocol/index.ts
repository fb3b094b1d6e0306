export type { Channel, ChannelEvents, Connector } from './channel.js'
export { ProtocolEngine, type ProtocolEngineOptions } from './protocol-engine.js'
export { streamUrl, webSocketConnector, type WebSocketLike } from './websocket.js'
