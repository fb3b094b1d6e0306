export { HttpEngine, type HttpEngineOptions } from './engine.js'
export type { Fetch } from './fetch.js'
