export { WebSocketUpgrade } from './websocket-upgrade.js'
