export * from './api.js'
export * from './platform.js'
