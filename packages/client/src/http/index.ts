export { HttpEngine, type HttpEngineOptions } from './http-engine.js'
export type { Fetch } from './fetch.js'
