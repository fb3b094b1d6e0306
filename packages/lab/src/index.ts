export * from './checks/index.js'
export * from './cluster/index.js'
export * from './history/index.js'
export * from './world/index.js'
