export * from './history/index.js'
export * from './world/index.js'
